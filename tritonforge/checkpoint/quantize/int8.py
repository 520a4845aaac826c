"""Rounding weights to 8-bit integers with one scale for each output channel or one for a whole tensor. Pure.

The numbers follow TensorRT-LLM's converter (0.16.0.dev2024112600, run on a CPU), which computes scales in the dtype of
the weights: a quotient ``127 / x`` is there a reciprocal, rounded, times 127, rounded again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tritonforge.checkpoint.quantize.magnitudes import cast
from tritonforge.formats.safetensors import Array

LARGEST = 127
_SINGLE = np.dtype(np.float32)


@dataclass(frozen=True, slots=True)
class Scales:
    """Scales of weights, float32, any shape.

    Args:
        to_int: What weights are multiplied by to become integers.
        to_float: What integers are multiplied by to become weights again.
    """

    to_int: Array
    to_float: Array


def scales_of(magnitudes: Array) -> Scales:
    """Scales that take magnitudes to 127.

    A magnitude so small that its scale exceeds float16 gets a float32 scale instead: upstream's would be infinite, and
    the channel lost. A magnitude of 0 gets scales of 0.

    Args:
        magnitudes: Largest absolute values, in the dtype of the weights.
    """
    to_int = quotient_of_127(magnitudes)
    to_float = cast(_reciprocal(to_int), magnitudes.dtype).astype(np.float32)
    to_int = to_int.astype(np.float32)
    exact = magnitudes.astype(np.float32)
    lost, silent = ~np.isfinite(to_int), exact == 0
    with np.errstate(divide="ignore", over="ignore"):
        to_int = np.where(lost, np.float32(LARGEST) / exact, to_int)
        to_float = np.where(lost, exact / np.float32(LARGEST), to_float)
    return Scales(np.where(silent, np.float32(0), to_int), np.where(silent, np.float32(0), to_float))


def quotient_of_127(values: Array) -> Array:
    """127 / x as PyTorch computes it in the dtype of `values`: a reciprocal, rounded, times 127, rounded."""
    if values.dtype == np.float64:
        with np.errstate(divide="ignore"):
            return np.asarray((1.0 / values) * LARGEST)
    with np.errstate(over="ignore"):
        return cast(cast(_reciprocal(values), values.dtype).astype(np.float32) * np.float32(LARGEST), values.dtype)


def round_products(weights: Array, to_int: Array, *, dtype: np.dtype[np.generic]) -> Array:
    """Weights times scales as int8.

    Args:
        weights: float32, float16 or bfloat16.
        to_int: float32 scales, to be broadcast.
        dtype: The dtype in which the product is held before it is rounded to integers.
    """
    return _round(cast(cast(weights, _SINGLE) * to_int, dtype))


def round_quotients(weights: Array, to_float: Array, *, dtype: np.dtype[np.generic]) -> Array:
    """Weights divided by scales as int8; arguments as in `round_products`. Where a scale is 0, the result is 0."""
    divisors = np.where(to_float == 0, np.float32(np.inf), to_float)
    return _round(cast(cast(weights, _SINGLE) / divisors, dtype))


def _round(values: Array) -> Array:
    rounded: Array = np.rint(cast(values, _SINGLE))
    return np.clip(rounded, -LARGEST, LARGEST, out=rounded).astype(np.int8)


def _reciprocal(values: Array) -> Array:
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.float32(1) / values.astype(np.float32))
