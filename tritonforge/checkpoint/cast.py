"""Changing the float type of values, rounded to nearest even. Pure.

numpy makes float32 of float16 one value at a time, which quantisation waits for. Here many are made at a time, with the
same result: the fraction is shifted, the exponent moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tritonforge.formats.safetensors import DTYPES, Array

_FLOAT32, _FLOAT16 = DTYPES["F32"], DTYPES["F16"]
_BIAS = 127 - 15  # by which exponents of float16 are smaller than those of float32
_CHUNK_VALUES = 1 << 15  # what is computed with stays in the cache of a core


def cast_into(values: Array, out: Array) -> None:
    """Write values in another float type; what does not fit becomes infinite.

    Args:
        values: float32, float16 or bfloat16, any shape.
        out: Where they go: the same shape, one of these types.
    """
    is_widened = (values.dtype, out.dtype) == (_FLOAT16, _FLOAT32)
    if not is_widened or not (values.flags.c_contiguous and out.flags.c_contiguous):
        _copy(values, out)
        return
    flat, flat_out = values.reshape(-1), out.reshape(-1)
    for start in range(0, flat.size, _CHUNK_VALUES):
        _widen(flat[start : start + _CHUNK_VALUES], flat_out[start : start + _CHUNK_VALUES])


def cast_to(values: Array, dtype: np.dtype[Any]) -> Array:
    """Values in another float type; what does not fit becomes infinite.

    Args:
        values: float32, float16 or bfloat16, any shape.
        dtype: One of these types.
    """
    if values.dtype == dtype:
        return values
    made = np.empty(values.shape, dtype)
    cast_into(values, made)
    return made


def _copy(values: Array, out: Array) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        np.copyto(out, values, casting="unsafe")


def _widen(values: Array, out: Array) -> None:
    if np.bitwise_and(values.view(np.uint16), np.uint16(0x7FFF)).max() >= np.uint16(0x7C00):
        _copy(values, out)
        return
    # The exponent is moved by a product, which normalises subnormal numbers on the way.
    made = out.view(np.int32)
    np.copyto(made, values.view(np.int16))  # the sign fills the upper half …
    np.left_shift(made, 13, out=made)
    np.bitwise_and(made, np.int32(~0x70000000), out=made)  # … and stays in the top bit
    np.multiply(out, np.float32(2.0**_BIAS), out=out)
