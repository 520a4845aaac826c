"""Weights of four bits: packing, groups, and factors that keep the errors of important inputs small."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.support.activation_ranges import make_ranges, write_ranges
from tests.support.checkpoints import write_llama
from tests.support.dequantise import DTYPES, dequantised, read_tensors
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.checkpoint.quantize.awq import find_factors, multiply_inputs
from tritonforge.checkpoint.quantize.int4 import group_scales, pack, round_groups

SHAPES = st.tuples(st.integers(1, 6).map(lambda n: 2 * n), st.integers(1, 5))
PLACES = ["attention.dense", "attention.qkv", "mlp.fc", "mlp.gate", "mlp.proj"]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(arrays.arrays(np.int8, SHAPES, elements=st.integers(-8, 7)))
def test_what_was_packed_is_unpacked_again(integers: np.ndarray) -> None:
    packed = pack(integers)
    assert packed.shape == (integers.shape[0] // 2, integers.shape[1])
    for parity, shift in enumerate((0, 4)):
        nibbles = packed.view(np.uint8).astype(np.int64) >> shift & 15
        assert np.array_equal(np.where(nibbles > 7, nibbles - 16, nibbles), integers[parity::2])


def test_the_low_nibble_is_the_even_output_channel() -> None:
    assert pack(np.array([[1, -1], [2, -8]], np.int8)).view(np.uint8).tolist() == [[0x21, 0x8F]]


def test_a_group_is_scaled_by_its_largest_weight() -> None:
    weights = np.array([[7, -3.4, 0.875, 0], [1.75, 0.25, -14, 1]], np.float16)
    scales = group_scales(weights, 2)
    assert scales.dtype == np.float16
    np.testing.assert_array_equal(scales, np.array([[1, 0.125], [0.25, 2]], np.float16))
    assert round_groups(weights, scales).tolist() == [[7, -3, 7, 0], [7, 1, -7, 0]]


def test_a_group_of_zeros_stays_zeros() -> None:
    weights = np.zeros((2, 64), np.float16)
    scales = group_scales(weights, 64)
    assert np.isfinite(scales).all()
    assert (scales > 0).all()
    assert not round_groups(weights, scales).any()


@pytest.mark.reference
@pytest.mark.parametrize("code", ["F16", "BF16", "F32"])
def test_rounding_is_that_of_torch(code: str) -> None:
    torch = pytest.importorskip("torch")
    kind = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32}[code]
    weights = torch.randn(64, 256, generator=torch.Generator().manual_seed(0)).to(kind)
    groups = weights.reshape(64, 4, 64)
    scales = (groups.abs().amax(dim=2).float() / 7).to(kind)
    integers = (groups.float() / scales.float()[:, :, None]).round().clip(-8, 7).reshape(64, 256).to(torch.int8)
    ours = weights.float().numpy().astype(DTYPES[code])
    assert np.array_equal(group_scales(ours, 64).astype(np.float32), scales.float().numpy())
    assert np.array_equal(round_groups(ours, group_scales(ours, 64)), integers.numpy())


def test_tensors_of_a_layer_have_the_documented_form(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", hidden=128, intermediate=256, layers=1, tokenizer=None)
    convert(source, tmp_path / "out", ConvertOptions(dtype="bfloat16", precision="int4_awq", group_size=64))
    tensors = read_tensors(tmp_path / "out" / "rank0.safetensors")
    kinds = {name.rpartition(".")[2] for name in tensors if "attention" in name or "mlp" in name}
    assert kinds == {"weight", "weights_scaling_factor", "prequant_scaling_factor"}
    sizes = dict(zip(PLACES, [(128, 128), (256, 128), (256, 128), (256, 128), (128, 256)], strict=True))
    for place, (outputs, inputs) in sizes.items():
        found = {kind: tensors[f"transformer.layers.0.{place}.{kind}"] for kind in kinds}
        assert {kind: (values.dtype, values.shape) for kind, values in found.items()} == {
            "weight": (np.int8, (outputs // 2, inputs)),
            "weights_scaling_factor": (DTYPES["BF16"], (outputs, inputs // 64)),
            "prequant_scaling_factor": (DTYPES["BF16"], (inputs,)),
        }
        assert (found["prequant_scaling_factor"] == 1).all()
    assert tensors["lm_head.weight"].dtype == DTYPES["BF16"]


def test_factors_make_the_errors_of_loud_inputs_smaller() -> None:
    random = np.random.default_rng(0)
    weights = random.standard_normal((32, 256)).astype(np.float16)
    inputs = np.where(np.arange(256) % 64 == 0, 50.0, 1.0).astype(np.float32)
    factors = find_factors(weights, inputs, 64)
    errors = {}
    for name, chosen in (("plain", np.ones(256, np.float16)), ("found", factors)):
        scaled = multiply_inputs(weights, chosen)
        scales = group_scales(scaled, 64)
        restored = round_groups(scaled, scales) * np.repeat(scales.astype(np.float32), 64, axis=1)
        differences = restored * chosen.astype(np.float32) - weights.astype(np.float32)
        errors[name] = np.linalg.norm(differences * inputs)
    assert errors["found"] < 0.6 * errors["plain"]


def test_equal_inputs_need_no_factors() -> None:
    weights = np.random.default_rng(0).standard_normal((32, 128)).astype(np.float16)
    assert (find_factors(weights, np.full(128, 3, np.float32), 64) == 1).all()


def test_with_ranges_the_outputs_of_a_layer_come_closer_to_those_of_the_source(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", hidden=128, intermediate=256, layers=1, tokenizer=None, dtype="F16")
    ranges = make_ranges(source)
    loud = "model.layers.0.mlp.down_proj"
    inputs = np.where(np.arange(256) % 32 == 0, 80.0, 1.0).astype(np.float32)
    path = write_ranges(source, tmp_path / "ranges.safetensors", **{f"{loud.replace('.', '__')}__x": inputs})
    assert f"{loud}.x" in ranges
    x = np.random.default_rng(1).standard_normal((16, 256)) * inputs
    errors = []
    for name, file in (("plain", None), ("factors", path)):
        convert(source, tmp_path / name, ConvertOptions(precision="int4_awq", group_size=64, activation_ranges=file))
        made = dequantised(read_tensors(tmp_path / name / "rank0.safetensors"))["transformer.layers.0.mlp.proj.weight"]
        exact = read_tensors(source / "model.safetensors")[f"{loud}.weight"].astype(np.float32)
        errors.append(np.linalg.norm(x @ (made - exact).T))
    assert errors[1] < 0.8 * errors[0]
