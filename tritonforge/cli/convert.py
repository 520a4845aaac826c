"""`tritonforge convert`: a TensorRT-LLM checkpoint from a Hugging Face folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
from click.core import ParameterSource

from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.families.base import ENGINES, TENSORRT_LLM
from tritonforge.checkpoint.options import (
    AUTO,
    DEFAULT_RELEASE,
    GROUP_SIZES,
    KV_CACHES,
    PRECISIONS,
    SHARDINGS,
    ConvertOptions,
    SmoothQuant,
)
from tritonforge.checkpoint.quantize.precisions import READS_RANGES
from tritonforge.cli.output import json_option, print_json, say
from tritonforge.cli.progress import progress_bar
from tritonforge.formats.json_fields import read_json_object
from tritonforge.formats.trtllm import CONFIG_NAME, FLOAT_TYPES

# Options that say something for one precision only.
_ONLY_FOR: Mapping[str, str] = {
    "group_size": "int4_awq",
    "alpha": "int8_smoothquant",
    "per_channel": "int8_smoothquant",
    "per_token": "int8_smoothquant",
}


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--dtype",
    type=click.Choice((AUTO, *FLOAT_TYPES)),
    default=AUTO,
    show_default=True,
    help="Float type of the tensors; auto keeps the source's, but makes float16 of float32.",
)
@click.option(
    "--precision", type=click.Choice(PRECISIONS), help="Number format of the weights; by default the float type."
)
@click.option("--tp", type=click.IntRange(min=1), default=1, show_default=True, help="Ranks that share each layer.")
@click.option(
    "--pp", type=click.IntRange(min=1), default=1, show_default=True, help="Ranks that share the stack of layers."
)
@click.option(
    "--embedding-sharding",
    type=click.Choice(SHARDINGS),
    default=SHARDINGS[0],
    show_default=True,
    help="How the ranks of --tp share the embedding.",
)
@click.option(
    "--kv-cache",
    type=click.Choice(KV_CACHES),
    default=AUTO,
    show_default=True,
    help="Number format of the KV cache; auto is that of the weights.",
)
@click.option(
    "--group-size",
    type=click.Choice([str(size) for size in GROUP_SIZES]),
    default="128",
    show_default=True,
    help="Input channels that share a scale (int4_awq).",
)
@click.option(
    "--smoothquant-alpha",
    "alpha",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="How much of the activations' range moves into the weights (int8_smoothquant).",
)
@click.option(
    "--per-channel/--per-tensor",
    default=True,
    show_default=True,
    help="Scales of weights: one for each output channel, or one for each tensor (int8_smoothquant).",
)
@click.option(
    "--per-token/--static",
    default=True,
    show_default=True,
    help="Scales of activations: one for each token at run time, or fixed ones (int8_smoothquant).",
)
@click.option(
    "--activation-ranges",
    type=click.Path(path_type=Path),
    help="File with the ranges of activations that fp8, int8_smoothquant and a scaled KV cache need.",
)
@click.option(
    "--release",
    default=DEFAULT_RELEASE,
    show_default=True,
    help="TensorRT-LLM release that will read the checkpoint.",
)
@click.option(
    "--for-engine",
    type=click.Choice(ENGINES),
    default=TENSORRT_LLM,
    show_default=True,
    help="Engine that the checkpoint is for.",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    *,
    checkpoint: Path,
    out: Path,
    dtype: str,
    precision: str | None,
    tp: int,
    pp: int,
    embedding_sharding: str,
    kv_cache: str,
    group_size: str,
    alpha: float,
    per_channel: bool,
    per_token: bool,
    activation_ranges: Path | None,
    release: str,
    for_engine: str,
    as_json: bool,
) -> None:
    """Convert the Hugging Face folder CHECKPOINT to the TensorRT-LLM checkpoint OUT, which must not exist."""
    _refuse_contradictions(context, dtype, precision)
    if activation_ranges is not None and precision not in READS_RANGES and kv_cache == AUTO:
        problem = f"is only for --precision {', '.join(READS_RANGES)}, and for --kv-cache"
        raise click.BadParameter(problem, param_hint="--activation-ranges")
    options = ConvertOptions(
        dtype=dtype,
        precision=precision,
        tp=tp,
        pp=pp,
        embedding_sharding=embedding_sharding,
        kv_cache=kv_cache,
        group_size=int(group_size),
        smoothquant=SmoothQuant(alpha, per_channel, per_token),
        activation_ranges=activation_ranges,
        release=release,
    )
    with progress_bar("converting", wanted=not as_json) as on_progress:
        made = convert(checkpoint, out, options, for_engine=for_engine, on_event=say, on_progress=on_progress)
    if as_json:
        print_json({"path": made.path, "digest": made.digest, "config": read_json_object(made.path / CONFIG_NAME)})
    else:
        click.echo(made.path)


def _refuse_contradictions(context: click.Context, dtype: str, precision: str | None) -> None:
    """Refuse options that would be ignored: a user who gives one expects something of it."""
    if precision in FLOAT_TYPES and dtype not in (AUTO, precision):
        raise click.BadParameter(f"{precision} contradicts --dtype {dtype}", param_hint="--precision")
    for name, needed in _ONLY_FOR.items():
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and precision != needed:
            option = next(each for each in context.command.params if each.name == name)
            raise click.BadParameter(f"is only for --precision {needed}", param_hint=option.opts[0])
