"""From source tensors to the values of one target tensor: arrange rows, then change the dtype. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tritonforge.checkpoint.families.base import Arrangement, TargetTensor
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.errors import CheckpointError
from tritonforge.formats.safetensors import DTYPES, Array, PlannedTensor
from tritonforge.formats.trtllm import FLOAT_TYPES


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
        CheckpointError: A finite value does not fit into the dtype.
    """
    parts = [source.weights.read(part.name) for part in target.sources]
    arranged = arrange(parts, target.arrangement, heads=source.config.num_attention_heads)
    return cast_values(arranged, code, name=target.name)


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


def cast_values(values: Array, code: str, *, name: str) -> Array:
    """Values in another float dtype, rounded to nearest even.

    Args:
        values: Any shape.
        code: The dtype in the spelling of safetensors.
        name: Name of the tensor, for errors.

    Raises:
        CheckpointError: A finite value would become infinite, which happens with float16 beyond 65,504.
    """
    dtype = DTYPES[code]
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        result = values.astype(dtype)
    if dtype == np.float16 and np.count_nonzero(np.isinf(result)) > np.count_nonzero(np.isinf(values)):
        largest = float(np.max(np.abs(values[np.isfinite(values)]).astype(np.float32)))
        raise CheckpointError(
            f"{name}: the value {largest:g} does not fit into float16 (largest: 65504)",
            hint="convert to bfloat16 instead",
        )
    return result
