"""Weight-only quantisation by rounding to the nearest step. Pure numpy.

Symbols: `rows` output channels, `columns` input channels, `group` neighbouring input channels that share a scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

INT8_MAX = 127
UINT4_MAX = 15
SMALLEST_HALF = np.float16(6e-8)  # smallest positive float16: keeps the scale of an all-zero channel from being zero
GROUPS = (64, 32, 16)  # tried in this order; a smaller group would cost more in scales than it saves in weights


@dataclass(frozen=True, slots=True)
class Int8Weight:
    """`weight ≈ values * scales`; values int8 [rows, columns], scales float16 [rows, 1]."""

    values: NDArray[np.int8]
    scales: NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Int4Weight:
    """`weight ≈ (values - zeros) * scales`, per group.

    Args:
        values: 0–15 as uint8 [rows, columns / group, group], one value a byte.
        zeros: 0–15 as uint8 [rows, columns / group, 1].
        scales: float16 [rows, columns / group, 1].
    """

    values: NDArray[np.uint8]
    zeros: NDArray[np.uint8]
    scales: NDArray[np.float16]


def to_int8(weight: Floats) -> Int8Weight:
    """Quantise symmetrically with one scale per row.

    The error of a value is at most half its row's scale, plus what rounding the scale to float16 adds.

    Args:
        weight: float32 [rows, columns].
    """
    scales = _half(np.abs(weight).max(axis=1, keepdims=True) / INT8_MAX)
    values = np.clip(np.rint(weight / scales.astype(np.float32)), -INT8_MAX, INT8_MAX)
    return Int8Weight(values.astype(np.int8), scales)


def int4_group(columns: int) -> int | None:
    """The group size that divides `columns`, or None when none does and the matrix is to stay at 8 bits."""
    return next((group for group in GROUPS if columns % group == 0), None)


def to_int4(weight: Floats, group: int) -> Int4Weight:
    """Quantise asymmetrically with a scale and a zero point per group. Lossy: meant for memory, not for exact answers.

    Args:
        weight: float32 [rows, columns].
        group: Size of a group; divides columns.
    """
    rows, columns = weight.shape
    grouped = weight.reshape(rows, columns // group, group)
    low = np.minimum(grouped.min(axis=2, keepdims=True), 0.0)  # zero stays exactly representable
    high = np.maximum(grouped.max(axis=2, keepdims=True), 0.0)
    scales = _half((high - low) / UINT4_MAX)
    steps = scales.astype(np.float32)
    zeros = np.clip(np.rint(-low / steps), 0, UINT4_MAX)
    values = np.clip(np.rint(grouped / steps) + zeros, 0, UINT4_MAX)
    return Int4Weight(values.astype(np.uint8), zeros.astype(np.uint8), scales)


def pack_nibbles(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Two 4-bit values a byte, the first in the low half; an odd count is padded with zero."""
    flat = values.reshape(-1)
    if flat.size % 2:
        flat = np.append(flat, np.uint8(0))
    return np.ascontiguousarray(flat[0::2] | (flat[1::2] << 4))


def _half(scales: Floats) -> NDArray[np.float16]:
    half = scales.astype(np.float16)
    half[half == 0] = SMALLEST_HALF
    return half
