"""Moving the range of activations into the weights that they meet (SmoothQuant, arXiv:2211.10438). Pure.

A linear layer gives the same when its inputs are divided by a smoother and the columns of its weights are multiplied by
it. Where the inputs come out of a norm, the norm's weights are divided instead.

Every rounding here is that of TensorRT-LLM's converter: it keeps weights in 16 bits, computes with the smoother in
float64, and rounds back by way of float32. (Of weights in 32 bits its smoothers can differ in the last bit: PyTorch's
square root of float32 is not rounded correctly on every CPU.)
"""

from __future__ import annotations

import numpy as np

from tritonforge.checkpoint.quantize.magnitudes import cast
from tritonforge.formats.safetensors import Array

_SMALLEST = 1e-5
_HALF = 0.5
_SINGLE = np.dtype(np.float32)


def smoother_of(inputs: Array, columns: Array, alpha: float) -> Array:
    """What each input channel is divided by.

    Args:
        inputs: Largest absolute value of each input channel, float32 [in].
        columns: Largest absolute weight of each input channel, in the weights' dtype [in].
        alpha: How much of the range moves into the weights, 0 to 1.

    Returns:
        float64 [in]; infinite or NaN where all weights of a channel are 0 and `alpha` is below 1.
    """
    moved = _power(inputs.astype(np.float64), alpha)
    exponent = float(np.asarray(1 - alpha, columns.dtype))  # a number of the dtype that it is applied to
    kept = cast(_power(columns.astype(np.float64), exponent), columns.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(moved / kept.astype(np.float64), _SMALLEST)


def smooth_columns(weights: Array, smoother: Array) -> Array:
    """Weights for inputs that were divided by a smoother; what does not fit into their dtype becomes infinite.

    Args:
        weights: float32, float16 or bfloat16 [rows, in].
        smoother: float64 [in].
    """
    return cast(cast(weights, _SINGLE).astype(np.float64) * smoother, weights.dtype)


def smooth_norm(weights: Array, smoother: Array) -> Array:
    """Weights of a norm whose outputs come out divided by a smoother; of the same dtype, [in]."""
    return cast(weights.astype(np.float64) / smoother, weights.dtype)


def _power(values: Array, exponent: float) -> Array:
    return np.sqrt(values) if exponent == _HALF else np.power(values, exponent)
