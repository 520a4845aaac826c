"""Converted checkpoints against transformers: the logits of a plain forward pass over the target's tensors."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.checkpoints import write_glm, write_llama
from tests.support.reference import reference_logits
from tests.support.rotary import llama3_scaling
from tests.support.trtllm_forward import logits
from tritonforge.checkpoint.cast import cast_to
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.formats.safetensors import DTYPES

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = [
    pytest.mark.reference,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

IDS = [5, 7, 11, 13, 17, 19, 2, 2, 40, 41]
LLAMA3 = llama3_scaling(original=16)
GLM_ROTARY = {"rope_theta": 10000.0, "partial_rotary_factor": 0.5}
LLAMA_CASES = {
    "gqa": {},
    "mqa": {"kv_heads": 1},
    "mha": {"kv_heads": 4},
    "tied": {"tied": True},
    "attention_bias": {"attention_bias": True},
    "mlp_bias": {"mlp_bias": True},
    "wide_heads": {"head_dim": 24},
    "linear": {"rope_scaling": {"type": "linear", "factor": 4.0}},
    "linear_newer": {"rope_scaling": {"rope_type": "linear", "factor": 4.0}, "newer_layout": True},
    "llama3": {"rope_scaling": LLAMA3, "rope_theta": 500000.0},
    "llama3_newer": {"rope_scaling": LLAMA3, "rope_theta": 500000.0, "newer_layout": True},
    "two_kinds": {"rope_scaling": {"type": "linear", **LLAMA3}},
    "two_layouts": {"rope_scaling": LLAMA3, "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
    "bfloat16": {"dtype": "BF16", "shards": 3},
    "mistral": {"architecture": "MistralForCausalLM", "sliding_window": None},
}
GLM_CASES = {
    "gqa": {},
    "mqa": {"kv_heads": 1},
    "older_layout": {"newer_layout": False, "rope_theta": 5000000.0},
    "no_bias": {"attention_bias": False},
    "tied": {"tied": True},
    "wide_heads": {"head_dim": 24},
    "whole_head": {"partial_rotary_factor": 1.0},
    "linear": {"rope_parameters": {"rope_type": "linear", "factor": 4.0, **GLM_ROTARY}},
    "llama3": {"rope_parameters": {**LLAMA3, **GLM_ROTARY}},
    "float16": {"dtype": "F16", "shards": 2},
}


@pytest.mark.parametrize("case", LLAMA_CASES)
def test_llama_gives_the_logits_of_transformers(case: str, tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, **LLAMA_CASES[case])
    convert(source, tmp_path / "out", ConvertOptions(dtype="float32"), for_engine="openvino")
    np.testing.assert_allclose(logits(tmp_path / "out", IDS), reference_logits(source, IDS), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("case", GLM_CASES)
def test_glm_in_its_native_naming_gives_the_logits_of_transformers(case: str, tmp_path: Path) -> None:
    source = write_glm(tmp_path / "hf", tokenizer=False, **GLM_CASES[case])
    convert(source, tmp_path / "out", ConvertOptions(dtype="float32"), for_engine="openvino")
    np.testing.assert_allclose(logits(tmp_path / "out", IDS), reference_logits(source, IDS), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(("stored", "asked"), [("F32", "F16"), ("F32", "BF16"), ("F16", "BF16"), ("BF16", "F16")])
def test_values_are_rounded_as_torch_rounds_them(stored: str, asked: str) -> None:
    names = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    bits = {"F32": np.uint32, "F16": np.uint16, "BF16": np.uint16}
    drawn = np.random.default_rng(0).standard_normal(20000).astype(np.float32)
    drawn *= 10.0 ** np.random.default_rng(1).integers(-8, 4, drawn.size)  # subnormal halves included
    values = drawn.astype(DTYPES[stored])
    ours = cast_to(values, DTYPES[asked]).view(bits[asked])
    signed = torch.from_numpy(values.view(bits[stored]).view(f"i{values.itemsize}").copy())
    theirs = signed.view(names[stored]).to(names[asked]).view(torch.int16).numpy().view(np.uint16)
    np.testing.assert_array_equal(ours, theirs)
