"""`tritonforge import-gguf`: a Hugging Face checkpoint folder from a GGUF file."""

from __future__ import annotations

from pathlib import Path

import click

from tritonforge.checkpoint.gguf.importer import DTYPES, import_gguf
from tritonforge.cli.output import json_option, print_json, say


@click.command("import-gguf")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--dtype", type=click.Choice(tuple(DTYPES)), default="float16", show_default=True, help="Stored weights.")
@json_option
def command(*, file: Path, out: Path, dtype: str, as_json: bool) -> None:
    """Turn the GGUF FILE of a Llama model into the Hugging Face checkpoint folder OUT, which must not exist."""
    folder = import_gguf(file, out, dtype=dtype, on_event=say)
    if as_json:
        print_json({"path": folder, "dtype": dtype, "files": sorted(path.name for path in folder.iterdir())})
    else:
        click.echo(folder)
