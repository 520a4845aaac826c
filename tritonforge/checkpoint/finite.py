"""Finding values that are no numbers (NaN or infinite) in weights, at the speed of reading them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tritonforge.formats.safetensors import DTYPES, Array

# The bits of infinity by float type. NaN has the same exponent and a fraction, so its bits are a larger integer.
_INFINITY: Mapping[np.dtype[Any], np.uint16 | np.uint32] = {
    DTYPES["F32"]: np.uint32(0x7F800000),
    DTYPES["F16"]: np.uint16(0x7C00),
    DTYPES["BF16"]: np.uint16(0x7F80),
}
_CHUNK_VALUES = 1 << 17  # what is computed with fits into the cache of a core


def count_not_finite(values: Array) -> int:
    """How many values are NaN or infinite.

    Args:
        values: float32, float16 or bfloat16, any shape.
    """
    limit = _INFINITY[values.dtype] << 1
    return sum(
        int(np.count_nonzero(magnitudes >= limit)) for magnitudes in _magnitudes(values) if magnitudes.max() >= limit
    )


def has_not_finite(values: Array) -> bool:
    """Whether any value is NaN or infinite.

    Args:
        values: float32, float16 or bfloat16, any shape, contiguous, not empty.
    """
    infinity = _INFINITY[values.dtype]
    bits = values.reshape(-1).view(infinity.dtype)
    # Read as signed integers the positive ones come last, as unsigned integers the negative ones.
    sign = infinity.dtype.type(1 << (8 * infinity.itemsize - 1))
    return bool(bits.view(f"i{infinity.itemsize}").max() >= infinity or bits.max() >= infinity | sign)


def _magnitudes(values: Array) -> Iterator[Array]:
    """The bits of the values without their sign, doubled, in chunks: in that order as the absolute values are."""
    bits = values.reshape(-1).view(_INFINITY[values.dtype].dtype)
    for start in range(0, bits.size, _CHUNK_VALUES):
        chunk = bits[start : start + _CHUNK_VALUES]
        yield np.add(chunk, chunk)  # the sign is the top bit, and falls out
