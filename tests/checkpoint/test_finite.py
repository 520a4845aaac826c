"""Values that are no numbers are counted exactly, wherever they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.checkpoints import DTYPES
from tritonforge.checkpoint.finite import count_not_finite, has_not_finite


@given(st.lists(st.floats(width=32), max_size=50), st.sampled_from(sorted(DTYPES)))
def test_the_count_is_numpys(values: list[float], code: str) -> None:
    with np.errstate(over="ignore"):
        stored = np.array(values, np.float32).astype(DTYPES[code])
    expected = np.count_nonzero(~np.isfinite(stored.astype(np.float32)))
    assert count_not_finite(stored) == expected
    if values:
        assert has_not_finite(stored) == (expected > 0)


@pytest.mark.parametrize("code", DTYPES)
def test_every_chunk_is_counted(code: str) -> None:
    values = np.zeros((300, 1000), DTYPES[code])
    values[0, 0] = values[150, 3] = values[299, 999] = np.nan
    assert count_not_finite(values) == 3
    assert count_not_finite(values.T) == 3


@pytest.mark.parametrize("code", DTYPES)
def test_one_value_in_many_is_found_whatever_its_bits(code: str) -> None:
    values = np.linspace(-65504, 65504, 999).astype(DTYPES[code])
    assert not has_not_finite(values)
    for wrong in (np.inf, -np.inf, np.nan, -np.float32(np.nan)):
        one_wrong = values.copy()
        one_wrong[500] = wrong
        assert has_not_finite(one_wrong)
