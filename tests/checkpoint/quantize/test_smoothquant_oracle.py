"""SmoothQuant against TensorRT-LLM's own converter, tensor by tensor to the bit."""

import hashlib
import json
from pathlib import Path

from tests.support.dequantise import read_tensors
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions

ORACLE = Path(__file__).parents[2] / "oracle"
CASE = ORACLE / "llama_gqa_fp16"
TAG = "tp1pp1_float16_sq_pc_ptok"
OPTIONS = ConvertOptions(precision="int8_smoothquant", activation_ranges=CASE / "act_ranges.safetensors")


def test_smoothquant_equals_that_of_the_upstream_converter_to_the_bit(tmp_path: Path) -> None:
    convert(CASE / "hf", tmp_path / "out", OPTIONS)
    manifest = json.loads((ORACLE / "MANIFEST.json").read_text())
    expected = manifest["cases"]["llama_gqa_fp16"]["configs"][TAG]["tensors"]["rank0.safetensors"]
    found = {
        name: {
            "dtype": str(values.dtype),
            "shape": list(values.shape),
            "sha256": hashlib.sha256(values.tobytes()).hexdigest(),
        }
        for name, values in read_tensors(tmp_path / "out" / "rank0.safetensors").items()
    }
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        assert tensor == expected[name], name


def test_the_configuration_says_what_the_upstream_converter_says(tmp_path: Path) -> None:
    convert(CASE / "hf", tmp_path / "out", OPTIONS)
    made = json.loads((tmp_path / "out" / "config.json").read_text())["quantization"]
    expected = json.loads((CASE / "trtllm" / TAG / "config.json").read_text())["quantization"]
    assert made.items() <= expected.items()
    assert made["quant_algo"] == "W8A8_SQ_PER_CHANNEL_PER_TOKEN_PLUGIN"
