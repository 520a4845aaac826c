"""Casts round as the reference types do, for every value that there is."""

import ml_dtypes
import numpy as np
import pytest

from tritonforge.checkpoint.cast import cast_into, cast_to
from tritonforge.formats.safetensors import DTYPES


def test_every_bfloat16_becomes_the_float16_that_rounding_gives() -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    with np.errstate(all="ignore"):
        expected = values.astype(np.float32).astype(np.float16)
    number = ~np.isnan(expected)
    made = cast_to(values, DTYPES["F16"])
    assert made[number].tobytes() == expected[number].tobytes()
    assert np.isnan(made[~number]).all()


@pytest.mark.parametrize("code", ["F32", "BF16"])
def test_every_float16_becomes_what_numpy_makes_of_it(code: str) -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for some in (values, values[np.isfinite(values)], values[::3], values[:2]):
        with np.errstate(invalid="ignore"):
            expected = some.astype(np.float32).astype(DTYPES[code])
        number = ~np.isnan(some)
        made = cast_to(some, DTYPES[code])
        assert made[number].tobytes() == expected[number].tobytes()
        assert np.isnan(made[~number]).all()


@pytest.mark.parametrize("stored", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("code", ["F32", "F16", "BF16"])
def test_casts_equal_those_by_way_of_float32(stored: str, code: str) -> None:
    random = np.random.default_rng(0)
    values = (random.standard_normal((37, 11)) * 10.0 ** random.integers(-9, 4, (37, 11))).astype(DTYPES[stored])
    expected = values.astype(np.float32).astype(DTYPES[code])
    assert cast_to(values, DTYPES[code]).tobytes() == expected.tobytes()


def test_nothing_is_cast_into_nothing() -> None:
    cast_into(np.empty((0, 3), ml_dtypes.bfloat16), np.empty((0, 3), np.float16))
