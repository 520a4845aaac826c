"""What a precision asks of a checkpoint and of what was chosen; refused before any work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tritonforge.checkpoint.options import GROUP_SIZES, WRITTEN, ConvertOptions
from tritonforge.checkpoint.quantize.kv_cache import INT8
from tritonforge.checkpoint.quantize.linears import Linear, linears_of
from tritonforge.checkpoint.quantize.precisions import FP8, INT4_AWQ, SMOOTHQUANT
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.formats.trtllm import TrtllmConfig
from tritonforge.releases.checkpoint_rules import config_features
from tritonforge.releases.table import find_release

_LEAST_MULTIPLE = 64
_PADDED = "padded_int4"


def reasons_against(source: SourceCheckpoint, config: TrtllmConfig, options: ConvertOptions) -> tuple[str, ...]:
    """Why the chosen precision cannot be made.

    Args:
        source: The checkpoint.
        config: The target's configuration with dtype and ranks.
        options: What was chosen.
    """
    reasons: list[str] = []
    if options.activation_ranges is None:
        needing = [options.precision] if options.precision in (SMOOTHQUANT, FP8) else []
        needing += [f"an {INT8} KV cache"] if options.kv_cache == INT8 else []
        option, key = WRITTEN["activation_ranges"]
        reasons += [f"{name} needs a file of activation ranges ({option}, {key} in forge.yaml)" for name in needing]
    if options.precision == SMOOTHQUANT and not 0 <= options.smoothquant.alpha <= 1:
        reasons.append(f"smoothquant alpha is {options.smoothquant.alpha:g}; expected 0 to 1")
    if options.precision == INT4_AWQ:
        reasons += _int4_reasons(source, config, options)
    return tuple(reasons)


def advice_on_groups(source: SourceCheckpoint, config: TrtllmConfig, options: ConvertOptions) -> str | None:
    """The size of groups with which nothing is refused any more; None when there is none.

    Args:
        source: The checkpoint.
        config: The target's configuration with dtype and ranks.
        options: What was refused.
    """
    others = [size for size in GROUP_SIZES if size != options.group_size]
    fitting = [size for size in others if not reasons_against(source, config, replace(options, group_size=size))]
    if options.precision != INT4_AWQ or not fitting:
        return None
    option, key = WRITTEN["group_size"]
    return f"groups of {fitting[0]} fit: {option} {fitting[0]} ({key}: {fitting[0]} of the engine in forge.yaml)"


def _int4_reasons(source: SourceCheckpoint, config: TrtllmConfig, options: ConvertOptions) -> list[str]:
    reasons = []
    if config.dtype == "float32":
        reasons.append("its scales are of the float type, which float32 cannot be; expected float16 or bfloat16")
    # All layers are alike.
    for linear in linears_of(source):
        if linear.layer == 0:
            reasons += _shape_reasons(linear, config, options)
    return reasons


def _shape_reasons(linear: Linear, config: TrtllmConfig, options: ConvertOptions) -> Iterator[str]:
    size, tp = options.group_size, config.tp_size
    ranks = f" on each of {tp} ranks" if tp > 1 else ""
    inputs = linear.inputs // tp if linear.is_row_parallel else linear.inputs
    if inputs % size:
        where = ranks if linear.is_row_parallel else ""
        yield f"{linear.place} has {inputs} input channels{where}, which do not divide into groups of {size}"
    odd = [group.size for group in linear.groups(config) if not linear.is_row_parallel and group.size // tp % 2]
    if odd or linear.outputs % 2:
        yield f"{linear.place} has an odd number of output channels{ranks}; two of them share a byte"
    multiple = max(_LEAST_MULTIPLE, size) * tp
    if _PADDED not in config_features(find_release(options.release)):
        return
    if linear.inputs % multiple or linear.outputs % multiple:
        yield (
            f"{linear.place} is {linear.outputs} x {linear.inputs}; TensorRT-LLM {options.release} expects multiples "
            f"of {multiple} for groups of {size} on {tp} ranks"
        )
