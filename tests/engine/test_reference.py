"""The engine's logits against transformers in float32, for every form of checkpoint that is served."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.engine.glm_reference import write_native_twin
from tests.support.checkpoints import write_chatglm, write_glm, write_llama
from tests.support.engines import build_small, logits, small_spec
from tests.support.reference import reference_logits
from tests.support.rotary import llama3_scaling

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = [
    pytest.mark.reference,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

IDS = [5, 7, 11, 13, 17, 19, 2, 2, 40, 41, 90, 3, 77]
TOLERANCE = 1e-3
LLAMA3 = llama3_scaling(original=16)
LLAMA_CASES: dict[str, dict[str, object]] = {
    "gqa": {},
    "mha": {"kv_heads": 4},
    "mqa": {"kv_heads": 1},
    "tied": {"tied": True},
    "attention_bias": {"attention_bias": True},
    "mlp_bias": {"mlp_bias": True},
    "all_biases": {"attention_bias": True, "mlp_bias": True, "kv_heads": 1},
    "head_dim_apart_from_hidden_size": {"head_dim": 24},
    "rope_linear": {"rope_scaling": {"type": "linear", "factor": 4.0}},
    "rope_llama3": {"rope_scaling": LLAMA3, "rope_theta": 500000.0, "newer_layout": True},
    "bfloat16_source": {"dtype": "BF16"},
}
NATIVE_GLM_CASES: dict[str, dict[str, object]] = {
    "gqa": {},
    "mqa": {"kv_heads": 1},
    "rope_ratio": {"rope_theta": 500000.0},
    "no_bias": {"attention_bias": False},
    "head_dim_apart_from_hidden_size": {"head_dim": 24},
}
ORIGINAL_GLM_CASES: dict[str, dict[str, object]] = {
    "chatglm2": {"version": "chatglm2"},
    "chatglm2_rope_ratio": {"version": "chatglm2", "rope_ratio": 4.0},
    "chatglm3": {"version": "chatglm3"},
    "chatglm3_mqa": {"version": "chatglm3", "groups": 1},
    "chatglm3_rope_ratio": {"version": "chatglm3", "rope_ratio": 50.0},
    "glm4_rope_ratio": {"version": "glm4", "rope_ratio": 500.0},
}


def assert_agrees(source: Path, reference: Path, work: Path) -> None:
    engine = build_small(source, work / "engine")
    expected = reference_logits(reference, IDS)
    assert np.abs(expected).max() > 1.0  # otherwise the tolerance below would mean nothing
    assert np.abs(logits(engine.path, IDS) - expected).max() < TOLERANCE


@pytest.mark.parametrize("case", LLAMA_CASES)
def test_llama_gives_the_logits_of_transformers(case: str, tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, **LLAMA_CASES[case])
    assert_agrees(source, source, tmp_path)


@pytest.mark.parametrize("case", NATIVE_GLM_CASES)
def test_glm_in_its_native_naming_gives_the_logits_of_transformers(case: str, tmp_path: Path) -> None:
    source = write_glm(tmp_path / "hf", tokenizer=False, **NATIVE_GLM_CASES[case])
    assert_agrees(source, source, tmp_path)


@pytest.mark.parametrize("case", ORIGINAL_GLM_CASES)
def test_chatglm_in_its_original_naming_gives_the_logits_of_transformers(case: str, tmp_path: Path) -> None:
    source = write_chatglm(tmp_path / "hf", tokenizer=False, dtype="F32", **ORIGINAL_GLM_CASES[case])
    assert_agrees(source, write_native_twin(source, tmp_path / "native"), tmp_path)


@pytest.mark.parametrize("write", [write_llama, write_glm])
@pytest.mark.parametrize(("fused_attention", "fused_rotary"), [(False, True), (True, False), (False, False)])
def test_the_unfused_forms_give_the_same_logits(
    write: Callable[..., Path], fused_attention: bool, fused_rotary: bool, tmp_path: Path
) -> None:
    source = write(tmp_path / "hf")
    spec = small_spec(fused_attention=fused_attention, fused_rotary=fused_rotary)
    engine = build_small(source, tmp_path / "engine", spec=spec)
    assert np.abs(logits(engine.path, IDS, prefill=6) - reference_logits(source, IDS)).max() < TOLERANCE
