"""Scales of int8 and fp8 KV caches, with float and with quantised weights."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.activation_ranges import make_ranges, write_ranges
from tests.support.checkpoints import write_chatglm, write_llama
from tests.support.dequantise import read_tensors
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions

SCALE = "attention.kv_cache_scaling_factor"


@pytest.mark.parametrize(("kind", "largest"), [("int8", 127), ("fp8", 448)])
@pytest.mark.parametrize("precision", [None, "int8_weight_only", "int8_smoothquant", "fp8"])
def test_a_layer_has_one_scale_of_its_largest_query_key_or_value(
    tmp_path: Path, precision: str | None, kind: str, largest: int
) -> None:
    source = write_llama(tmp_path / "hf", layers=2, tokenizer=None, dtype="F16")
    path = write_ranges(source, tmp_path / "ranges.safetensors")
    options = ConvertOptions(precision=precision, kv_cache=kind, activation_ranges=path, tp=2, pp=2)
    convert(source, tmp_path / "out", options)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["quantization"]["kv_cache_quant_algo"] == kind.upper()
    ranges = make_ranges(source)
    for rank in range(4):
        tensors = read_tensors(tmp_path / "out" / f"rank{rank}.safetensors")
        found = {name: values for name, values in tensors.items() if "kv_cache" in name}
        assert list(found) == [f"transformer.layers.0.{SCALE}"]
        scale = found[f"transformer.layers.0.{SCALE}"]
        outputs = [ranges[f"model.layers.{rank // 2}.self_attn.{part}_proj.y"].max() for part in "qkv"]
        assert scale.dtype == np.float32
        assert scale.tolist() == [np.float32(max(outputs)) / np.float32(largest)]


def test_chatglm_has_the_range_of_its_fused_projection(tmp_path: Path) -> None:
    source = write_chatglm(tmp_path / "hf", layers=1, vocab=64, tokenizer=False)
    path = write_ranges(source, tmp_path / "ranges.safetensors")
    convert(source, tmp_path / "out", ConvertOptions(kv_cache="int8", activation_ranges=path))
    scale = read_tensors(tmp_path / "out" / "rank0.safetensors")[f"transformer.layers.0.{SCALE}"]
    module = "transformer.encoder.layers.0.self_attention.query_key_value"
    assert scale.tolist() == [make_ranges(source)[f"{module}.y"].max() / np.float32(127)]


def test_an_fp8_cache_without_ranges_has_scales_of_1(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", layers=1, tokenizer=None)
    convert(source, tmp_path / "out", ConvertOptions(kv_cache="fp8"))
    assert read_tensors(tmp_path / "out" / "rank0.safetensors")[f"transformer.layers.0.{SCALE}"].tolist() == [1]


def test_only_the_outputs_of_query_key_and_value_need_be_recorded(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", layers=1, tokenizer=None)
    ranges = make_ranges(source)
    unneeded = {
        name.replace(".", "__"): None for name in ranges if not name.endswith(("q_proj.y", "k_proj.y", "v_proj.y"))
    }
    path = write_ranges(source, tmp_path / "ranges.safetensors", **unneeded)
    convert(source, tmp_path / "out", ConvertOptions(kv_cache="int8", activation_ranges=path))
    assert (tmp_path / "out").is_dir()
