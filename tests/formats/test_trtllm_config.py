"""config.json of a TensorRT-LLM checkpoint: written and read back, wrong values named."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tritonforge.errors import CheckpointError, CheckpointNotFound, CorruptFile
from tritonforge.formats.rotary import RotaryScaling
from tritonforge.formats.trtllm import ChatGlmFields, TrtllmConfig, rank_file_name

LLAMA = TrtllmConfig(
    architecture="LlamaForCausalLM",
    dtype="float16",
    vocab_size=131,
    hidden_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_size=16,
    intermediate_size=96,
    hidden_act="silu",
    norm_epsilon=1e-5,
    position_embedding_type="rope_gpt_neox",
    max_position_embeddings=256,
    rotary_base=10000.0,
    rotary_pct=1.0,
    rotary_scaling=None,
    attn_bias=False,
    mlp_bias=False,
    tied_embeddings=False,
)
LLAMA3 = RotaryScaling(
    "llama3",
    32.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
    kind_keys=("rope_type",),
)
CHATGLM = replace(
    LLAMA,
    architecture="ChatGLMModel",
    hidden_act="swiglu",
    position_embedding_type="rope_gptj",
    rotary_pct=0.5,
    attn_bias=True,
    chatglm=ChatGlmFields(
        "chatglm3",
        add_bias_linear=False,
        add_qkv_bias=True,
        rmsnorm=True,
        apply_residual_connection_post_layernorm=False,
    ),
)


@pytest.mark.parametrize(
    "config",
    [
        LLAMA,
        CHATGLM,
        replace(LLAMA, rotary_scaling=LLAMA3, tied_embeddings=True),
        replace(LLAMA, rotary_scaling=RotaryScaling("linear", 2.0), attn_bias=True, mlp_bias=True),
        replace(LLAMA, tp_size=2, pp_size=2, quant_algo="W8A16", kv_cache_quant_algo="INT8"),
    ],
)
def test_what_is_written_is_read_back(config: TrtllmConfig) -> None:
    assert TrtllmConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_nested_objects_carry_only_keys_that_every_release_knows() -> None:
    written = replace(LLAMA, tp_size=2).to_json()
    assert written["mapping"] == {"world_size": 2, "tp_size": 2, "pp_size": 1}
    assert written["quantization"] == {"quant_algo": None, "kv_cache_quant_algo": None}


def test_chatglm_rotates_half_a_head_and_writes_the_whole_as_upstream_does() -> None:
    assert CHATGLM.rotary_dim == 8
    assert CHATGLM.to_json()["rotary_embedding_dim"] == 16
    assert LLAMA.to_json()["rotary_embedding_dim"] == 16


def test_unknown_keys_and_keys_of_other_releases_are_ignored() -> None:
    values = {**LLAMA.to_json(), "moe": {"num_experts": 0}, "runtime_defaults": None, "anything": [1]}
    assert TrtllmConfig.from_json(values) == LLAMA


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("hidden_size", None, "hidden_size is missing; expected a whole number"),
        ("hidden_size", "64", 'hidden_size is "64"'),
        ("vocab_size", 0, "vocab_size is 0"),
        ("norm_epsilon", -1e-5, "norm_epsilon is -1e-05; expected a number above 0"),
        ("mapping", [], "mapping is []; expected an object"),
        ("rotary_scaling", {"type": "yarn", "factor": 2.0}, 'rotary_scaling.type is "yarn"; expected linear or llama3'),
        ("attn_bias", "no", 'attn_bias is "no"; expected true or false'),
    ],
)
def test_a_wrong_value_names_file_key_and_expectation(key: str, value: object, expected: str) -> None:
    with pytest.raises(CorruptFile) as caught:
        TrtllmConfig.from_json({**LLAMA.to_json(), key: value}, Path("folder/config.json"))
    assert str(caught.value).startswith("folder/config.json: ")
    assert expected in str(caught.value)


def test_a_dtype_that_is_no_float_is_refused() -> None:
    with pytest.raises(CheckpointError, match="dtype is 'int8'; expected one of float32, float16, bfloat16"):
        TrtllmConfig.from_json({**LLAMA.to_json(), "dtype": "int8"})


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotFound, match=r"config\.json: no such file"):
        TrtllmConfig.read(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CorruptFile, match=r"config\.json: not JSON: .* at line 1"):
        TrtllmConfig.read(tmp_path)


def test_each_rank_has_a_file() -> None:
    assert [rank_file_name(rank) for rank in range(2)] == ["rank0.safetensors", "rank1.safetensors"]
