"""Our conversion against TensorRT-LLM's own, tensor by tensor to the bit, and the logits that must come of it."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.trtllm_forward import logits
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.formats.safetensors import TensorFolder

ORACLE = Path(__file__).parent.parent / "oracle"
MANIFEST = json.loads((ORACLE / "MANIFEST.json").read_text())
CASES = {
    ("llama_gqa_fp16", "tp1pp1_float16"): ConvertOptions(),
    ("llama_gqa_fp16", "tp2pp1_float16"): ConvertOptions(tp=2),
    ("llama_tied_rope3_bf16", "tp1pp1_bfloat16"): ConvertOptions(),
    ("chatglm3_v128", "tp1pp1_float16"): ConvertOptions(),
    ("chatglm3_v128", "tp2pp1_float16"): ConvertOptions(tp=2),
}
NUMPY_NAMES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32"}


@pytest.mark.parametrize(("case", "ranks"), CASES)
def test_tensors_equal_those_of_the_upstream_converter_to_the_bit(case: str, ranks: str, tmp_path: Path) -> None:
    made = convert(ORACLE / case / "hf", tmp_path / "out", CASES[case, ranks])
    files = MANIFEST["cases"][case]["configs"][ranks]["tensors"]
    assert sorted(files) == [f"rank{rank}.safetensors" for rank in range(made.config.world_size)]
    for file, expected in files.items():
        held = TensorFolder.open_file(tmp_path / "out" / file)
        assert held.names() == sorted(name for name, tensor in expected.items() if not tensor.get("buffer"))
        for name in held.names():
            info = held.info(name)
            found = {
                "dtype": NUMPY_NAMES[info.dtype],
                "shape": list(info.shape),
                "sha256": hashlib.sha256(held.read(name).tobytes()).hexdigest(),
            }
            assert found == expected[name], name


@pytest.mark.parametrize(("case", "ranks"), CASES)
def test_the_configuration_says_what_the_upstream_converter_says(case: str, ranks: str, tmp_path: Path) -> None:
    convert(ORACLE / case / "hf", tmp_path / "out", CASES[case, ranks])
    made = json.loads((tmp_path / "out" / "config.json").read_text())
    expected = json.loads((ORACLE / case / "trtllm" / ranks / "config.json").read_text())
    for nested in ("mapping", "quantization"):
        assert made[nested].items() <= expected[nested].items()
    only_here = {key for key in made if key not in expected}
    assert only_here <= {"tie_word_embeddings"}
    flat = {key: value for key, value in made.items() if key not in {"mapping", "quantization"} | only_here}
    assert flat == {key: expected[key] for key in flat}


@pytest.mark.parametrize("case", sorted({case for case, _ in CASES}))
def test_the_converted_tensors_give_the_logits_of_the_source(case: str, tmp_path: Path) -> None:
    convert(ORACLE / case / "hf", tmp_path / "out", ConvertOptions(dtype="float32"))
    expected = np.load(ORACLE / case / "logits.npy")
    found = logits(tmp_path / "out", MANIFEST["logits_ids"])
    np.testing.assert_allclose(found, expected, atol=2e-5, rtol=1e-5)
