"""What a release cannot take of a checkpoint is refused with the reason, before anything is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkpoints import write_chatglm, write_glm, write_llama
from tests.support.rotary import llama3_scaling
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.errors import UnknownRelease, UnsupportedModel
from tritonforge.formats.trtllm import TrtllmConfig


def llama(folder: Path, **options: Any) -> Path:
    return write_llama(folder, tokenizer=None, **options)


def chatglm(folder: Path, **options: Any) -> Path:
    return write_chatglm(folder, tokenizer=False, **options)


LINEAR = {"type": "linear", "factor": 2.0}
REFUSED = [
    (llama, {}, {"tp": 3}, "4 query heads do not divide into 3 tensor-parallel ranks"),
    (
        llama,
        {"heads": 12, "kv_heads": 4, "head_dim": 4},
        {"tp": 6},
        "4 key and value heads neither divide into 6 ",
    ),
    (llama, {"intermediate": 97}, {"tp": 2}, "the MLP width 97 does not divide into 2"),
    (
        llama,
        {"hidden": 65, "head_dim": 16},
        {"tp": 2, "embedding_sharding": "hidden"},
        "hidden size 65 does not divide",
    ),
    (llama, {}, {"pp": 3}, "2 layers do not fill 3 pipeline stages"),
    (llama, {"layers": 5}, {"pp": 2, "release": "0.14.0"}, "drops the last ones without a word, so that 4 of 5 would"),
    (llama, {"layers": 5}, {"pp": 2}, "which of the two 0.16.0 does is unverified"),
    (chatglm, {}, {"pp": 2}, "cannot be divided into 2 pipeline stages"),
    (chatglm, {}, {"tp": 2}, "vocabulary of 131 does not divide into 2 .* lm_head then has another shape"),
    (chatglm, {}, {"tp": 2, "release": "0.10.0"}, "0.10.0 writes ranks of different sizes without a word"),
    (write_glm, {"vocab": 131, "tokenizer": False}, {"tp": 2}, "vocabulary of 131 does not divide into 2"),
    (chatglm, {"version": "glm4"}, {"release": "0.11.0"}, "GLM-4 came with TensorRT-LLM 0.12; 0.11.0 does not know it"),
    (write_glm, {"tokenizer": False}, {"release": "0.9.0"}, "GLM-4 came with TensorRT-LLM 0.12"),
    (llama, {}, {"tp": 2, "embedding_sharding": "hidden", "release": "0.9.0"}, "0.9.0 rejects a Llama embedding"),
    (llama, {}, {"tp": 2, "embedding_sharding": "vocab", "release": "0.11.0"}, "0.11.0 does not pad an embedding"),
    (llama, {"attention_bias": True}, {"release": "0.11.0"}, r"\(attention_bias\) work from TensorRT-LLM 0.12 on"),
    (llama, {"head_dim": 8}, {"release": "0.11.0"}, r"\(head_dim\) works from TensorRT-LLM 0.12 on"),
    (
        llama,
        {"rope_scaling": llama3_scaling()},
        {"release": "0.11.0"},
        "llama3 rotary scaling .* came with TensorRT-LLM",
    ),
    (
        llama,
        {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"release": "0.10.0"},
        "has no key `type`, which",
    ),
    (llama, {"rope_scaling": {**LINEAR, "factor": 0.5}}, {"release": "0.9.0"}, "with a factor above 1, this is 0.5"),
    (chatglm, {"multi_query": False}, {}, "multi_query_attention is false"),
    (llama, {}, {"embedding_sharding": "vocab"}, "the embedding is shared by 'vocab' while tp is 1"),
    (llama, {"mlp_bias": True}, {}, "MLP biases"),
]


@pytest.mark.parametrize(("write", "source", "options", "expected"), REFUSED)
def test_what_cannot_be_is_refused_with_the_reason(
    tmp_path: Path, write: Any, source: dict[str, Any], options: dict[str, Any], expected: str
) -> None:
    folder = write(tmp_path / "hf", **source)
    with pytest.raises(UnsupportedModel, match=expected):
        convert(folder, tmp_path / "out", ConvertOptions(**options))
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


ADVICE = [
    (llama, {}, {"tp": 3}, "choose --tp 1, 2 or 4 (tensor_parallel in forge.yaml)"),
    (
        llama,
        {"layers": 3},
        {"pp": 2},
        "choose --pp 1 or 3 (pipeline_parallel in forge.yaml), or a release of 1.0 on "
        "(--release, release in forge.yaml)",
    ),
    (chatglm, {}, {"tp": 2}, "choose --tp 1 (tensor_parallel in forge.yaml)"),
    (chatglm, {"vocab": 132}, {"pp": 2, "tp": 2}, "choose --pp 1 (pipeline_parallel in forge.yaml)"),
    (
        llama,
        {},
        {"tp": 3, "pp": 3},
        "choose --tp 1, 2 or 4 (tensor_parallel in forge.yaml) and --pp 1 or 2 (pipeline_parallel in forge.yaml)",
    ),
    (
        llama,
        {"attention_bias": True},
        {"release": "0.11.0"},
        "choose a release of 0.12 on (--release, release in forge.yaml)",
    ),
    (
        llama,
        {},
        {"tp": 2, "embedding_sharding": "hidden", "release": "0.9.0"},
        "choose --embedding-sharding none (embedding_sharding in forge.yaml), or a release of 0.10 on "
        "(--release, release in forge.yaml)",
    ),
    (
        llama,
        {},
        {"embedding_sharding": "vocab"},
        "choose --tp 2 or 4 (tensor_parallel in forge.yaml), or --embedding-sharding none "
        "(embedding_sharding in forge.yaml)",
    ),
    (llama, {"rope_scaling": {**LINEAR, "factor": 0.5}}, {"release": "0.9.0"}, "choose a release of 0.11 on"),
]


@pytest.mark.parametrize(("write", "source", "options", "expected"), ADVICE)
def test_a_refusal_says_what_would_do(
    tmp_path: Path, write: Any, source: dict[str, Any], options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        convert(write(tmp_path / "hf", **source), tmp_path / "out", ConvertOptions(**options))
    assert (caught.value.hint or "").startswith(expected)


def test_what_no_choice_helps_has_no_advice(tmp_path: Path) -> None:
    source = llama(tmp_path / "hf", mlp_bias=True)
    with pytest.raises(UnsupportedModel) as caught:
        convert(source, tmp_path / "out", ConvertOptions())
    assert caught.value.hint == "the engine openvino can serve it"


def test_an_fp8_cache_without_ranges_is_taken_with_a_note(tmp_path: Path) -> None:
    told: list[str] = []
    convert(llama(tmp_path / "hf"), tmp_path / "out", ConvertOptions(kv_cache="fp8"), on_event=told.append)
    (note,) = [line for line in told if line.startswith("note: ")]
    assert "every scale of the fp8 KV cache is 1" in note
    assert "--activation-ranges" in note


TAKEN = [
    (llama, {"layers": 5}, {"pp": 2, "release": "1.0.0"}),
    (llama, {"layers": 4}, {"pp": 2, "release": "0.9.0"}),
    (chatglm, {"vocab": 132}, {"tp": 2, "release": "0.9.0"}),
    (chatglm, {"version": "glm4", "vocab": 132}, {"tp": 2, "release": "0.12.0"}),
    (llama, {}, {"tp": 2, "embedding_sharding": "hidden", "release": "0.10.0"}),
    (llama, {}, {"tp": 2, "embedding_sharding": "vocab", "release": "0.12.0"}),
    (llama, {"attention_bias": True, "head_dim": 8}, {"release": "0.12.0"}),
    (llama, {"rope_scaling": llama3_scaling()}, {"release": "0.12.0"}),
    (llama, {"rope_scaling": LINEAR}, {"release": "0.9.0"}),
    (llama, {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, {"release": "0.11.0"}),
    (llama, {}, {"tp": 4, "release": "0.13.0"}),
]


@pytest.mark.parametrize(("write", "source", "options"), TAKEN)
def test_what_the_release_takes_is_converted(
    tmp_path: Path, write: Any, source: dict[str, Any], options: dict[str, Any]
) -> None:
    made = convert(write(tmp_path / "hf", **source), tmp_path / "out", ConvertOptions(**options))
    assert made.config.world_size == options.get("tp", 1) * options.get("pp", 1)


def test_every_reason_is_given_at_once(tmp_path: Path) -> None:
    options = ConvertOptions(tp=3, pp=3, release="0.10.0")
    with pytest.raises(UnsupportedModel) as caught:
        convert(llama(tmp_path / "hf", attention_bias=True), tmp_path / "out", options)
    assert len(caught.value.reasons) == 4  # heads, key and value heads, stages, biases
    assert str(caught.value).startswith(f"{tmp_path / 'hf'} (LlamaForCausalLM) on TensorRT-LLM 0.10.0 is not supported")


def test_an_unknown_release_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownRelease, match=r"'0\.16\.9' is not in the release table"):
        convert(llama(tmp_path / "hf"), tmp_path / "out", ConvertOptions(release="0.16.9"))


@pytest.mark.parametrize("options", [{"tp": 2}, {"pp": 2}, {"embedding_sharding": "vocab"}, {"precision": "fp8"}])
def test_the_embedded_engine_takes_one_rank_of_floats(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModel, match="the embedded engine"):
        convert(llama(tmp_path / "hf"), tmp_path / "out", ConvertOptions(**options), for_engine="openvino")


def test_where_converters_of_a_release_differ_the_user_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    source = llama(tmp_path / "hf", tied=True)
    convert(source, tmp_path / "a", ConvertOptions(tp=4, release="0.12.0"), on_event=told.append)
    notes = [line for line in told if line.startswith("note: ")]
    assert [note.split()[1] for note in notes] == ["key", "lm_head"]
    told.clear()
    convert(source, tmp_path / "b", ConvertOptions(tp=4), on_event=told.append)
    assert told == ["converting LlamaForCausalLM: 17 tensors to float16 for 4 ranks", f"wrote {tmp_path / 'b'}"]


@pytest.mark.parametrize("version", ["chatglm2", "chatglm3"])
def test_early_lines_have_one_ratio_for_chatglm(tmp_path: Path, version: str) -> None:
    source = chatglm(tmp_path / "hf", version=version, rope_ratio=4.0)
    made = convert(source, tmp_path / "out", ConvertOptions(release="0.11.0"))
    written = json.loads((tmp_path / "out/config.json").read_text())
    assert written["rope_ratio"] == 4.0
    assert written["architecture"] == "ChatGLMForCausalLM"
    assert not {"rotary_base", "rotary_scaling", "rotary_embedding_dim"} & written.keys()
    assert written["quantization"] == {"quant_algo": None, "kv_cache_quant_algo": None}
    read = TrtllmConfig.read(tmp_path / "out")
    assert (read.rotary_base, read.rotary_scaling) == (made.config.rotary_base, made.config.rotary_scaling)


def test_early_lines_have_flat_keys_for_llama(tmp_path: Path) -> None:
    convert(llama(tmp_path / "hf"), tmp_path / "out", ConvertOptions(release="0.10.0"))
    written = json.loads((tmp_path / "out/config.json").read_text())
    assert (written["kv_dtype"], written["moe_num_experts"], written["moe_top_k"]) == ("float16", 0, 0)
    assert (written["moe_normalization_mode"], written["moe_tp_mode"]) == (None, 2)
    assert written["quantization"]["exclude_modules"] == ["lm_head"]
    assert "rotary_embedding_dim" not in written
    convert(llama(tmp_path / "hf2"), tmp_path / "newer", ConvertOptions(release="0.12.0"))
    newer = json.loads((tmp_path / "newer/config.json").read_text())
    assert not {"kv_dtype", "moe_num_experts", "rotary_embedding_dim"} & newer.keys()
