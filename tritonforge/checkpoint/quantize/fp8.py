"""Weights as 8-bit floats (e4m3) with one scale for a tensor. Pure."""

from __future__ import annotations

import numpy as np

from tritonforge.formats.safetensors import DTYPES, Array

LARGEST = 448.0
_E4M3 = DTYPES["F8_E4M3"]


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
    scaled: Array = weights.astype(np.float32) / scale
    return np.clip(scaled, -LARGEST, LARGEST, out=scaled).astype(_E4M3)
