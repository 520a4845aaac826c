"""`tritonforge convert`: a TensorRT-LLM checkpoint from a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path

import click

from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.families.base import ENGINES, TENSORRT_LLM
from tritonforge.checkpoint.options import AUTO, ConvertOptions
from tritonforge.cli.output import json_option, print_json, say
from tritonforge.formats.trtllm import FLOAT_TYPES

_RELEASE = "0.16.0"


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--dtype",
    type=click.Choice((AUTO, *FLOAT_TYPES)),
    default=AUTO,
    show_default=True,
    help="Float type of the weights; auto keeps the source's.",
)
@click.option(
    "--tp",
    "tensor_parallel",
    type=click.IntRange(min=1),
    default=1,
    help="Ranks that share each layer (tensor parallel); 1 so far.",
)
@click.option(
    "--pp",
    "pipeline_parallel",
    type=click.IntRange(min=1),
    default=1,
    help="Ranks that share the stack of layers (pipeline parallel); 1 so far.",
)
@click.option("--precision", default=None, help="Precision of the weights; a float type so far.")
@click.option("--embedding-sharding", default="none", help="How ranks share the embedding; none so far.")
@click.option(
    "--release", default=_RELEASE, show_default=True, help="TensorRT-LLM release that will read the checkpoint."
)
@click.option(
    "--for-engine",
    type=click.Choice(ENGINES),
    default=TENSORRT_LLM,
    show_default=True,
    help="Engine that the checkpoint is for.",
)
@json_option
def command(
    *,
    checkpoint: Path,
    out: Path,
    dtype: str,
    tensor_parallel: int,
    pipeline_parallel: int,
    precision: str | None,
    embedding_sharding: str,
    release: str,
    for_engine: str,
    as_json: bool,
) -> None:
    """Convert the Hugging Face folder CHECKPOINT to the TensorRT-LLM checkpoint OUT, which must not exist."""
    _require("--tp", tensor_parallel, 1)
    _require("--pp", pipeline_parallel, 1)
    _require("--embedding-sharding", embedding_sharding, "none")
    _require("--release", release, _RELEASE)
    options = ConvertOptions(dtype=_float_type(dtype, precision))
    made = convert(checkpoint, out, options, for_engine=for_engine, on_event=say)
    if as_json:
        print_json({"path": made.path, "digest": made.digest, "config": made.config.to_json()})
    else:
        click.echo(made.path)


def _require(option: str, value: object, only: object) -> None:
    """Refuse a value that the conversion cannot honour yet; ignoring it would give another checkpoint than asked."""
    if value != only:
        raise click.BadParameter(f"{value} is not supported; expected {only}", param_hint=option)


def _float_type(dtype: str, precision: str | None) -> str:
    """The float type that --dtype and --precision ask for together."""
    if precision is None:
        return dtype
    if precision not in FLOAT_TYPES:
        raise click.BadParameter(
            f"{precision} is not supported; expected {', '.join(FLOAT_TYPES)}", param_hint="--precision"
        )
    if dtype not in (AUTO, precision):
        raise click.BadParameter(f"{precision} contradicts --dtype {dtype}", param_hint="--precision")
    return precision
