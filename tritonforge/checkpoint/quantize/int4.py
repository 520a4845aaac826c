"""Weights as 4-bit integers with a scale for each group of input channels, in the layout of AWQ checkpoints. Pure.

A weight [out, in] becomes int8 [out/2, in]: the low four bits hold an even output channel, the high four the odd one
after it. Scales are [out, in / group size].
"""

from __future__ import annotations

import numpy as np

from tritonforge.checkpoint.quantize.magnitudes import cast, largest
from tritonforge.formats.safetensors import Array

_SMALLEST, _LARGEST = -8, 7
_NIBBLE = 0x0F
_SINGLE = np.dtype(np.float32)
_BITS = 4


def group_scales(weights: Array, group_size: int) -> Array:
    """Scales that take the largest weight of each group to 7.

    Args:
        weights: float32, float16 or bfloat16 [out, in]; contiguous.
        group_size: Input channels of a group; divides `in`.

    Returns:
        Scales of the dtype of the weights, [out, in / group_size]; 1 where a scale would be 0.
    """
    rows, columns = weights.shape
    magnitudes = largest(weights.reshape(rows, columns // group_size, group_size), axis=2)
    scales = cast(magnitudes.astype(np.float32) / np.float32(_LARGEST), weights.dtype)
    return np.where(scales == 0, np.ones((), weights.dtype), scales)


def round_groups(weights: Array, scales: Array) -> Array:
    """Weights as integers from -8 to 7.

    Args:
        weights: Floats [out, in].
        scales: What `group_scales` gave.

    Returns:
        int8 [out, in].
    """
    rows, columns = weights.shape
    groups = cast(weights, _SINGLE).reshape(rows, scales.shape[1], -1)
    rounded: Array = np.rint(groups / cast(scales, _SINGLE)[:, :, None])
    return np.clip(rounded, _SMALLEST, _LARGEST, out=rounded).astype(np.int8).reshape(rows, columns)


def pack(integers: Array) -> Array:
    """Two output channels in a byte.

    Args:
        integers: int8 from -8 to 7, [out, in] with an even number of rows.

    Returns:
        int8 [out/2, in].
    """
    even, odd = integers[0::2].view(np.uint8), integers[1::2].view(np.uint8)
    return ((even & _NIBBLE) | (odd << _BITS)).view(np.int8)
