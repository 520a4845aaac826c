"""Rounding of weights to 8 and 4 bits: the error bounds that follow from the step size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tritonforge.engine.openvino.quantize import int4_group, pack_nibbles, to_int4, to_int8

ROUNDING_OF_SCALE = 2.0**-10  # float16 keeps 11 significant bits, and 127 steps add up
weights = arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.sampled_from([16, 32, 64])),
    elements=st.floats(-8, 8, width=32).filter(lambda value: value == 0 or abs(value) > 1e-3),
)


@given(weights)
def test_int8_is_off_by_at_most_half_a_step(weight: np.ndarray) -> None:
    quantised = to_int8(weight)
    steps = quantised.scales.astype(np.float32)
    error = np.abs(quantised.values * steps - weight)
    assert (error <= steps / 2 + np.abs(weight) * ROUNDING_OF_SCALE + 1e-6).all()


@given(weights)
def test_int4_is_off_by_at_most_a_step(weight: np.ndarray) -> None:
    quantised = to_int4(weight, 16)
    steps = quantised.scales.astype(np.float32)
    restored = (quantised.values.astype(np.float32) - quantised.zeros) * steps
    error = np.abs(restored.reshape(weight.shape) - weight).reshape(restored.shape)
    assert (error <= steps * 1.02 + 1e-6).all()  # half a step, and half for the rounded zero point


@given(weights)
def test_zero_stays_zero_in_int4(weight: np.ndarray) -> None:
    weight[:, 0] = 0.0
    quantised = to_int4(weight, 16)
    assert (quantised.values[:, 0, 0] == quantised.zeros[:, 0, 0]).all()


@pytest.mark.parametrize("make", [to_int8, lambda weight: to_int4(weight, 16)])
def test_a_row_of_zeros_has_no_division_by_zero(make) -> None:
    quantised = make(np.zeros((2, 16), np.float32))
    assert np.isfinite(quantised.scales).all()
    assert (quantised.scales > 0).all()


@given(arrays(np.uint8, st.integers(1, 40), elements=st.integers(0, 15)))
def test_packed_nibbles_unpack_to_the_same_values(values: np.ndarray) -> None:
    packed = pack_nibbles(values)
    unpacked = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)
    assert (unpacked[: values.size] == values).all()
    assert packed.size == -(-values.size // 2)


def test_the_group_divides_the_columns() -> None:
    assert int4_group(576) == 64
    assert int4_group(96) == 32
    assert int4_group(48) == 16
    assert int4_group(40) is None
