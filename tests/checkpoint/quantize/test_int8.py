"""Rounding to 8-bit integers: what upstream does, and where its scales would leave float16."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.support.activation_ranges import write_ranges
from tests.support.checkpoints import write_llama
from tests.support.dequantise import DTYPES, dequantised, read_tensors
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions, SmoothQuant
from tritonforge.checkpoint.quantize.int8 import quotient_of_127, round_products, round_quotients, scales_of
from tritonforge.checkpoint.quantize.magnitudes import cast, largest
from tritonforge.checkpoint.quantize.smoothing import smooth_columns, smooth_norm, smoother_of

FLOATS = [np.dtype(np.float16), DTYPES["BF16"], np.dtype(np.float32)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_largest_absolute_value_is_found_along_each_axis(dtype: np.dtype) -> None:
    values = np.random.default_rng(0).standard_normal((7, 5, 3)).astype(dtype)
    for axis in (0, 1, 2, None):
        found = largest(values, axis=axis)
        assert found.dtype == dtype
        assert np.array_equal(found.astype(np.float32), np.abs(values.astype(np.float32)).max(axis=axis))


def test_casting_from_float64_rounds_by_way_of_float32() -> None:
    """Just above the middle of two numbers of float16, and in the middle once rounded to float32."""
    value = np.array([1 + 2.0**-11 + 2.0**-40])
    assert value.astype(np.float16) == 1 + 2.0**-10
    assert cast(value, np.dtype(np.float16)) == 1


def test_a_quotient_is_rounded_twice() -> None:
    """127 / 0.253173828125 is 501.63, between 501.5 and 501.75; the reciprocal is rounded down to 3.94921875 first."""
    assert quotient_of_127(np.array([0.253173828125], np.float16)).tolist() == [501.5]


def test_the_largest_weight_becomes_127() -> None:
    weights = np.array([[0.5, -1.0, 0.25]], np.float32)
    scales = scales_of(largest(weights, axis=1))
    for rounded in (
        round_products(weights, scales.to_int[:, None], dtype=np.dtype(np.float32)),
        round_quotients(weights, scales.to_float[:, None], dtype=np.dtype(np.float32)),
    ):
        assert rounded.tolist() == [[64, -127, 32]]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_channel_of_zeros_stays_zero(dtype: np.dtype) -> None:
    weights = np.zeros((2, 4), dtype)
    scales = scales_of(largest(weights, axis=1))
    assert scales.to_float.tolist() == [0, 0]
    assert not round_products(weights, scales.to_int[:, None], dtype=dtype).any()
    assert not round_quotients(weights, scales.to_float[:, None], dtype=dtype).any()


def test_a_scale_that_exceeds_float16_is_kept_in_float32() -> None:
    """Upstream's scale of a channel of weights below 0.0019 is infinite, and all its weights are lost."""
    small = np.array([0.001], np.float16)
    assert np.isinf(quotient_of_127(small))
    scales = scales_of(small)
    assert scales.to_int * scales.to_float == pytest.approx(1, rel=1e-6)
    assert scales.to_float * 127 == pytest.approx(small.astype(np.float32), rel=1e-6)


def test_a_smoother_takes_the_range_from_inputs_to_weights() -> None:
    inputs = np.array([16, 4, 1], np.float32)
    weights = np.array([[0.25, 1, -1], [1, 4, 0.5]], np.float32)
    columns = largest(weights, axis=0)
    assert smoother_of(inputs, columns, 0.5).tolist() == [4, 1, 1]
    assert smoother_of(inputs, columns, 1.0).tolist() == inputs.tolist()
    smoother = smoother_of(inputs, columns, 0.3)
    x = np.array([[3.0, -2.0, 0.5]])
    np.testing.assert_allclose((x / smoother) @ smooth_columns(weights, smoother).T, x @ weights.T, rtol=1e-6)
    np.testing.assert_allclose(smooth_norm(np.ones(3, np.float32), smoother), 1 / smoother, rtol=1e-6)


def test_a_smoother_is_never_smaller_than_upstreams_limit() -> None:
    assert smoother_of(np.zeros(1, np.float32), np.ones(1, np.float16), 0.5).tolist() == [1e-5]


@pytest.mark.parametrize(("per_channel", "per_token"), list(itertools.product([True, False], [True, False])))
def test_silent_and_quiet_channels_keep_their_meaning(tmp_path: Path, per_channel: bool, per_token: bool) -> None:
    source = write_llama(tmp_path / "hf", layers=1, dtype="F16", tokenizer=None)
    weights, name = load_file(source / "model.safetensors"), "model.layers.0.mlp.down_proj.weight"
    weights[name][3] = 0
    weights[name][4] *= np.float16(0.001)
    save_file(weights, source / "model.safetensors", metadata={"format": "pt"})
    options = ConvertOptions(
        precision="int8_smoothquant",
        smoothquant=SmoothQuant(0.5, per_channel, per_token),
        activation_ranges=write_ranges(source, tmp_path / "ranges.safetensors"),
    )
    convert(source, tmp_path / "out", options)
    found = dequantised(read_tensors(tmp_path / "out" / "rank0.safetensors"))["transformer.layers.0.mlp.proj.weight"]
    assert np.isfinite(found).all()
    assert not found[3].any()
    if per_channel:
        row = weights[name][4].astype(np.float32)
        assert np.linalg.norm(found[4] - row) < 0.02 * np.linalg.norm(row)
