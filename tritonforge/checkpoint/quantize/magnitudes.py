"""Largest absolute values of floats, at the speed of integers. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tritonforge.checkpoint.cast import cast_to
from tritonforge.formats.safetensors import Array

# All bits of a float but its sign, by its size in bytes.
_BITS: Mapping[int, np.uint16 | np.uint32] = {2: np.uint16(0x7FFF), 4: np.uint32(0x7FFFFFFF)}


def largest(values: Array, axis: int | None = None) -> Array:
    """The largest absolute value, along an axis or of all. Without their sign, the bits of floats sort as integers.

    Args:
        values: float32, float16 or bfloat16; finite, contiguous.
        axis: The axis that vanishes; None: all of them.

    Returns:
        Values of the same dtype; no dimensions left when `axis` is None.
    """
    mask = _BITS[values.dtype.itemsize]
    bits = np.bitwise_and(values.view(mask.dtype), mask).max(axis=axis)
    return np.asarray(bits, mask.dtype).view(values.dtype)


def cast(values: Array, dtype: np.dtype[np.generic]) -> Array:
    """Values in another float dtype, by way of float32 where they are wider than that; too large ones become infinite.

    Args:
        values: Floats of any kind.
        dtype: float32, float16 or bfloat16.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return cast_to(values.astype(np.float32) if values.dtype == np.float64 else values, dtype)
