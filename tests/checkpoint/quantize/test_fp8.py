"""Weights as 8-bit floats."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.activation_ranges import make_ranges, write_ranges
from tests.support.checkpoints import write_llama
from tests.support.dequantise import DTYPES, read_tensors
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.checkpoint.quantize.fp8 import round_to_e4m3, scale_of

E4M3 = DTYPES["F8_E4M3"]


def test_the_largest_weight_becomes_the_largest_number() -> None:
    assert scale_of(np.float32(896)) == 2
    made = round_to_e4m3(np.array([896, -896, 2, 0.001], np.float32), np.float32(2))
    assert made.astype(np.float32).tolist() == [448, -448, 1, 0]


def test_rounding_up_never_makes_a_number_that_e4m3_does_not_have() -> None:
    """Above 448 the type has NaN only; a scale that was rounded down leads there."""
    made = round_to_e4m3(np.array([1000.0], np.float32), np.float32(1000 / 448 * (1 - 1e-6)))
    assert made.astype(np.float32).tolist() == [448]


def test_a_matrix_of_zeros_has_a_usable_scale() -> None:
    assert scale_of(np.float32(0)) == 1


def test_every_number_and_every_middle_between_two_is_rounded_as_ml_dtypes_does() -> None:
    numbers = np.arange(256, dtype=np.uint8).view(E4M3).astype(np.float32)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    middles = (numbers[1:] + numbers[:-1]) / 2
    near = [np.nextafter(middles, np.float32(end)) for end in (-np.inf, np.inf)]
    values = np.concatenate([numbers, middles, *near, np.float32([0.0, -0.0, 1e-45, -1e-45, 2**-10, -(2**-10)])])
    assert round_to_e4m3(values, np.float32(1)).tobytes() == values.astype(E4M3).tobytes()


@pytest.mark.reference
@pytest.mark.parametrize("code", ["F16", "BF16", "F32"])
def test_rounding_is_that_of_torch(code: str) -> None:
    torch = pytest.importorskip("torch")
    kind = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32}[code]
    weights = torch.randn(200_000, generator=torch.Generator().manual_seed(0)).to(kind)
    scale = weights.abs().max().float() / 448
    expected = (weights.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    ours = weights.float().numpy().astype(DTYPES[code])
    found_scale = scale_of(np.abs(ours.astype(np.float32)).max())
    assert found_scale == scale.numpy()
    found = round_to_e4m3(ours, found_scale)
    assert np.array_equal(found.view(np.uint8), expected.view(torch.uint8).numpy())


def test_tensors_of_a_layer_have_the_documented_form(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", layers=1, tokenizer=None, dtype="BF16", attention_bias=True)
    path = write_ranges(source, tmp_path / "ranges.safetensors", shared=False)
    convert(source, tmp_path / "out", ConvertOptions(precision="fp8", activation_ranges=path))
    tensors, ranges = read_tensors(tmp_path / "out" / "rank0.safetensors"), make_ranges(source, shared=False)
    weights = read_tensors(source / "model.safetensors")
    layer, module = "transformer.layers.0", "model.layers.0"
    fused = {
        "attention.qkv": [f"self_attn.{part}_proj" for part in "qkv"],
        "attention.dense": ["self_attn.o_proj"],
        "mlp.fc": ["mlp.gate_proj"],
        "mlp.gate": ["mlp.up_proj"],
        "mlp.proj": ["mlp.down_proj"],
    }
    for place, parts in fused.items():
        assert tensors[f"{layer}.{place}.weight"].dtype == E4M3
        for kind, largest in (
            ("weights", max(np.abs(weights[f"{module}.{part}.weight"].astype(np.float32)).max() for part in parts)),
            ("activation", max(ranges[f"{module}.{part}.x"].max() for part in parts)),
        ):
            scale = tensors[f"{layer}.{place}.{kind}_scaling_factor"]
            assert scale.dtype == np.float32
            assert scale.tolist() == [np.float32(largest) / np.float32(448)]
    for name in ("lm_head.weight", "transformer.vocab_embedding.weight", f"{layer}.attention.qkv.bias"):
        assert tensors[name].dtype == DTYPES["BF16"]
