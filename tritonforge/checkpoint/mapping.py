"""From source tensors to the values of one target tensor: arrange rows, then change the dtype. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tritonforge.checkpoint.families.base import Arrangement, TargetTensor
from tritonforge.checkpoint.finite import count_not_finite
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.errors import CheckpointError, CorruptFile
from tritonforge.formats.safetensors import DTYPES, Array, PlannedTensor
from tritonforge.formats.trtllm import FLOAT_TYPES

# By dtype in the spelling of safetensors: its largest value, and the next dtype that holds larger ones.
_LARGEST = {"F16": "65504", "BF16": "3.38953e+38"}
_WIDER = {"F16": "bfloat16", "BF16": "float32"}


def plan_tensors(source: SourceCheckpoint, dtype: str) -> list[PlannedTensor]:
    """All target tensors of a single rank, each made when its turn to be written comes.

    Splitting over ranks belongs between arranging and casting, on the target's rows or columns.

    Args:
        source: The checkpoint.
        dtype: float32, float16 or bfloat16.
    """
    code = FLOAT_TYPES[dtype]
    return [
        PlannedTensor(target.name, code, target.shape, partial(make_tensor, source, target, code))
        for target in source.targets
    ]


def make_tensor(source: SourceCheckpoint, target: TargetTensor, code: str) -> Array:
    """The values of one target tensor.

    Args:
        source: The checkpoint to read from.
        target: What to make.
        code: Its dtype in the spelling of safetensors.

    Raises:
        CheckpointError: A value is NaN or infinite, or does not fit into the dtype.
    """
    parts = {part.name: source.weights.read(part.name) for part in target.sources}
    arranged = arrange(list(parts.values()), target.arrangement, heads=source.config.num_attention_heads)
    result = cast_values(arranged, code)
    # Every type fits into float32, so what is there before the cast says the same and is not wider.
    if count_not_finite(arranged if result.dtype == np.float32 else result):
        raise _unusable(parts, source, code)
    return result


def arrange(parts: Sequence[Array], arrangement: Arrangement, *, heads: int) -> Array:
    """Put rows into the target's order.

    Args:
        parts: Tensors with the same trailing dimensions.
        arrangement: The order.
        heads: Number of attention heads, for `UNZIP_HEADS`.
    """
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if arrangement is Arrangement.SWAP_HALVES:
        first, second = np.split(rows, 2)
        return np.concatenate([second, first])
    if arrangement is Arrangement.UNZIP_HEADS:
        # [head, (q, k, v), D, …] → [(q, k, v), head, D, …]
        by_head = rows.reshape(heads, 3, -1, *rows.shape[1:])
        return by_head.swapaxes(0, 1).reshape(rows.shape)
    return rows


def cast_values(values: Array, code: str) -> Array:
    """Values in another float dtype, rounded to nearest even; what does not fit becomes infinite.

    Args:
        values: Any shape.
        code: The dtype in the spelling of safetensors.
    """
    dtype = DTYPES[code]
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype)


def _unusable(parts: Mapping[str, Array], source: SourceCheckpoint, code: str) -> CheckpointError:
    """Why a target has values that are not finite: its sources have, or the dtype is too narrow for them."""
    for name, values in parts.items():
        count = count_not_finite(values)
        if count:
            return CorruptFile(
                source.weights.info(name).file, f"tensor {name!r} has {count:,} values that are NaN or infinite"
            )
    largest = {name: float(np.max(np.abs(values.astype(np.float32)))) for name, values in parts.items()}
    name = max(largest, key=lambda name: largest[name])
    return CheckpointError(
        f"{name}: the value {largest[name]:g} does not fit into {DTYPES[code].name} (largest: {_LARGEST[code]})",
        hint=f"convert to {_WIDER[code]} instead",
    )
