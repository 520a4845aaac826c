"""Changing the float type of values, rounded to nearest even. Pure."""

from __future__ import annotations

import numpy as np

from tritonforge.formats.safetensors import DTYPES, Array


def cast_into(values: Array, out: Array) -> None:
    """Write values in another float type; what does not fit becomes infinite.

    Args:
        values: float32, float16 or bfloat16, any shape.
        out: Where they go: the same shape, one of these types.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        np.copyto(out, values, casting="unsafe")


def cast_values(values: Array, code: str) -> Array:
    """Values in another float type; what does not fit becomes infinite.

    Args:
        values: float32, float16 or bfloat16, any shape.
        code: The type in the spelling of safetensors.
    """
    if values.dtype == DTYPES[code]:
        return values
    made = np.empty(values.shape, DTYPES[code])
    cast_into(values, made)
    return made
