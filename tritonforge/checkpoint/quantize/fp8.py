"""Weights as 8-bit floats (e4m3) with one scale for a tensor. Pure."""

from __future__ import annotations

import numpy as np

from tritonforge.checkpoint.quantize.magnitudes import cast
from tritonforge.formats.safetensors import DTYPES, Array

LARGEST = 448.0
_E4M3 = DTYPES["F8_E4M3"]
_BIAS = 127 - 7  # by which exponents of e4m3 are smaller than those of float32
_SMALLEST = 2.0**-9
_NORMAL = np.uint32((_BIAS + 1) << 23)  # the smallest number that is not subnormal, as bits of float32


def scale_of(magnitude: np.float32) -> np.float32:
    """The scale that takes a magnitude to the largest number of e4m3; 1 for a magnitude of 0.

    Args:
        magnitude: A largest absolute value.
    """
    scale = np.float32(magnitude / np.float32(LARGEST))
    return scale if scale > 0 else np.float32(1)


def round_to_e4m3(weights: Array, scale: np.float32) -> Array:
    """Weights divided by a scale, rounded to nearest even; what is too large becomes the largest number.

    Args:
        weights: Floats, any shape.
        scale: What `scale_of` gave.
    """
    scaled: Array = cast(weights, np.dtype(np.float32)) / scale
    return _rounded(np.clip(scaled, -LARGEST, LARGEST, out=scaled)).view(_E4M3)


def _rounded(values: Array) -> Array:
    """The bits of e4m3 of float32 values up to the largest; by integers, since ml_dtypes takes one value at a time."""
    magnitude = np.bitwise_and(values.view(np.uint32), np.uint32(0x7FFFFFFF))
    moved = np.right_shift(magnitude, 20)  # 3 bits of the fraction stay; half to even needs the last of them
    np.bitwise_and(moved, np.uint32(1), out=moved)
    np.add(moved, np.uint32(0x7FFFF), out=moved)
    np.add(moved, magnitude, out=moved)
    np.right_shift(moved, 20, out=moved)
    np.subtract(moved, np.uint32(_BIAS << 3), out=moved)
    subnormal = np.rint(np.multiply(magnitude.view(np.float32), np.float32(1 / _SMALLEST)))
    made = np.where(magnitude < _NORMAL, subnormal.astype(np.uint8), moved.astype(np.uint8))
    sign: Array = np.right_shift(values.view(np.uint32), 24).astype(np.uint8) & np.uint8(0x80)
    return np.bitwise_or(made, sign, out=made)
