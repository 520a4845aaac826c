"""`tritonforge import-gguf`: a Hugging Face checkpoint folder from a GGUF file."""

from __future__ import annotations

from pathlib import Path

import click

from tritonforge.checkpoint.gguf import import_gguf
from tritonforge.cli.output import json_option, print_json, say
from tritonforge.formats.trtllm import FLOAT_TYPES


@click.command("import-gguf")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--dtype",
    type=click.Choice(tuple(FLOAT_TYPES)),
    default="float16",
    show_default=True,
    help="Float type of the stored weights.",
)
@json_option
def command(*, file: Path, out: Path, dtype: str, as_json: bool) -> None:
    """Turn the GGUF FILE of a Llama model into the Hugging Face checkpoint folder OUT, which must not exist."""
    folder = import_gguf(file, out, dtype=dtype, on_event=say)
    if as_json:
        print_json({"path": folder, "dtype": dtype, "files": sorted(path.name for path in folder.iterdir())})
    else:
        click.echo(folder)
