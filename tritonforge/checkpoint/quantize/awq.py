"""Choosing what inputs are multiplied by before they meet 4-bit weights (AWQ, arXiv:2306.00978). Pure.

Input channels that carry large values deserve finer weights: they are divided by a factor, and their weights multiplied
by it, which makes rounding errors there count less. How far to go is found by trying: exponents from 0 (no factors at
all) to 1, judged by the errors of some rows of weights, each weighted with the largest value of its input channel.
"""

from __future__ import annotations

import numpy as np

from tritonforge.checkpoint.finite import has_not_finite
from tritonforge.checkpoint.quantize.int4 import group_scales, round_groups
from tritonforge.checkpoint.quantize.magnitudes import cast
from tritonforge.formats.safetensors import Array

_STEPS = 10
_SINGLE = np.dtype(np.float32)
_SMALLEST = 1e-4  # of the largest input: channels that are all but silent get no larger factors than this asks for


def find_factors(weights: Array, inputs: Array, group_size: int) -> Array:
    """What inputs are to be multiplied by.

    Args:
        weights: Some rows of the layer's weights, in the dtype of the model [rows, in].
        inputs: Largest absolute value of each input channel, float32 [in].
        group_size: Input channels that share a scale.

    Returns:
        Factors in the dtype of the weights [in]; all 1 when no others give smaller errors.
    """
    importance = np.maximum(inputs / inputs.max(), np.float32(_SMALLEST))
    candidates = [_factors(importance, step / _STEPS, weights.dtype) for step in range(_STEPS + 1)]
    errors = [_error(weights, factors, importance, group_size) for factors in candidates]
    return candidates[int(np.argmin(errors))]


def multiply_inputs(weights: Array, factors: Array) -> Array:
    """Weights for inputs that are multiplied by factors: divided by them, in their own dtype."""
    return cast(cast(weights, _SINGLE) / cast(factors, _SINGLE), weights.dtype)


def _factors(importance: Array, exponent: float, dtype: np.dtype[np.generic]) -> Array:
    powers = importance**exponent
    return cast(np.sqrt(powers.max() * powers.min()) / powers, dtype)


def _error(weights: Array, factors: Array, importance: Array, group_size: int) -> float:
    """Weighted squared difference between weights and what they become."""
    scaled = multiply_inputs(weights, factors)
    if has_not_finite(scaled):
        return float("inf")
    scales = group_scales(scaled, group_size)
    rows, columns = weights.shape
    integers = round_groups(scaled, scales).reshape(rows, -1, group_size).astype(np.float32)
    restored = (integers * cast(scales, _SINGLE)[:, :, None]).reshape(rows, columns) * cast(factors, _SINGLE)
    return float(np.sum(((restored - cast(weights, _SINGLE)) * importance) ** 2))
