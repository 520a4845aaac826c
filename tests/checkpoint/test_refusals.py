"""What is not supported is refused by name, with every reason; near misses that are supported are not."""

import json
from pathlib import Path

import pytest

from tests.support.checkpoints import write_chatglm, write_glm, write_llama
from tests.support.rotary import llama3_scaling
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.inspect import inspect
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.checkpoint.source import open_checkpoint
from tritonforge.errors import UnsupportedModel


def llama(folder: Path, **config: object) -> Path:
    return write_llama(folder, tokenizer=None, **config)


def reasons_of(folder: Path) -> str:
    with pytest.raises(UnsupportedModel) as caught:
        open_checkpoint(folder)
    return " | ".join(caught.value.reasons)


def change(folder: Path, **config: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return folder


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rotary scaling 'dynamic' is not supported"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "rotary scaling 'yarn'"),
        ({"rope_scaling": {"type": "longrope"}}, "rotary scaling 'longrope'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "newer_layout": True}, "rotary scaling 'yarn'"),
        (
            {"rope_scaling": llama3_scaling() | {"low_freq_factor": 4.0}},
            "low_freq_factor 4 is not below high_freq_factor 4",
        ),
        (
            {"rope_scaling": llama3_scaling() | {"low_freq_factor": 5.0}},
            "low_freq_factor 5 is not below high_freq_factor 4",
        ),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1.0}}}, "layers differ in their rotary settings"),
        ({"partial_rotary_factor": 0.25}, "only 0.25 of each head rotates"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'; expected silu"),
        ({"num_local_experts": 8}, "mixture of experts (num_local_experts is 8)"),
        ({"vision_config": {"depth": 2}}, "multimodal wrapper (it has a vision_config)"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "weights are quantised (gptq)"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "1 of its layers are of type 'sliding_attention'"),
        ({"sliding_window": 128}, "sliding window of 128 tokens (it was trained for 512 positions)"),
        ({"torch_dtype": "float8_e4m3fn"}, "its dtype is 'float8_e4m3fn'"),
    ],
)
def test_a_llama_outside_the_supported_form_is_refused_with_the_reason(
    tmp_path: Path, config: dict[str, object], expected: str
) -> None:
    assert expected in reasons_of(llama(tmp_path, **config))


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ("Glm4ForCausalLM", "sandwich norms"),
        ("MixtralForCausalLM", "mixture of experts"),
        ("Qwen3ForCausalLM", "normalises queries and keys"),
        ("LlamaForSequenceClassification", "architecture 'LlamaForSequenceClassification' is none of LlamaForCausalLM"),
    ],
)
def test_another_architecture_is_refused_by_what_sets_it_apart(
    tmp_path: Path, architecture: str, expected: str
) -> None:
    assert expected in reasons_of(change(llama(tmp_path), architectures=[architecture]))


def test_a_checkpoint_of_tensorrt_llm_is_told_from_one_of_hugging_face(tmp_path: Path) -> None:
    convert(write_llama(tmp_path / "hf", tokenizer=None), tmp_path / "out", ConvertOptions(tp=2))
    for as_it_is in (False, True):
        with pytest.raises(UnsupportedModel, match="it is a TensorRT-LLM checkpoint") as caught:
            open_checkpoint(tmp_path / "out", as_it_is=as_it_is)
        assert "LlamaForCausalLM" in caught.value.message
        assert "architecture ''" not in caught.value.message
        assert "the Hugging Face folder that it was made of" in (caught.value.hint or "")
    found = inspect(tmp_path / "out")
    assert (found.architecture, found.supported) == ("LlamaForCausalLM", False)
    assert "it is a TensorRT-LLM checkpoint" in found.reasons[0]


def test_an_engine_of_tensorrt_llm_is_told_from_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"version": "0.16.0", "pretrained_config": {}, "build_config": {}}')
    assert "it is the folder of a TensorRT-LLM engine" in reasons_of(tmp_path)


def test_all_reasons_are_given_at_once(tmp_path: Path) -> None:
    found = reasons_of(llama(tmp_path, hidden_act="relu", num_experts=4, rope_scaling={"type": "dynamic"}))
    assert all(part in found for part in ("relu", "num_experts is 4", "'dynamic'"))


def test_pickled_weights_are_one_of_the_reasons(tmp_path: Path) -> None:
    (llama(tmp_path, hidden_act="relu") / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    found = reasons_of(tmp_path)
    assert "relu" in found
    assert "pickle" in found


def test_a_refusal_needs_no_weights(tmp_path: Path) -> None:
    (llama(tmp_path, num_experts=8) / "model.safetensors").unlink()
    assert "num_experts is 8" in reasons_of(tmp_path)


@pytest.mark.parametrize("window", [None, 512, 4096])
def test_a_window_that_no_position_leaves_is_no_window(tmp_path: Path, window: int | None) -> None:
    source = llama(tmp_path, architecture="MistralForCausalLM", sliding_window=window)
    assert open_checkpoint(source).config.architecture == "MistralForCausalLM"


def test_mistral_without_the_key_has_the_window_that_its_configuration_class_assumes(tmp_path: Path) -> None:
    long = llama(tmp_path / "long", architecture="MistralForCausalLM", max_position=32768)
    assert "sliding window of 4096 tokens" in reasons_of(long)
    assert open_checkpoint(llama(tmp_path / "short", architecture="MistralForCausalLM")).family == "llama"


def test_a_window_that_is_switched_off_is_no_window(tmp_path: Path) -> None:
    assert open_checkpoint(llama(tmp_path, sliding_window=128, use_sliding_window=False))


def test_tensors_that_the_architecture_does_not_use_are_not_dropped_silently(tmp_path: Path) -> None:
    source = change(llama(tmp_path, attention_bias=True), attention_bias=False)
    found = reasons_of(source)
    assert "model.layers.0.self_attn.k_proj.bias" in found
    assert "and 5 more" in found


def test_mlp_biases_are_refused_where_upstream_drops_them_and_served_elsewhere(tmp_path: Path) -> None:
    source = llama(tmp_path / "hf", mlp_bias=True)
    with pytest.raises(UnsupportedModel, match="mlp_bias") as caught:
        convert(source, tmp_path / "out")
    assert caught.value.hint == "the engine openvino can serve it"
    assert not (tmp_path / "out").exists()
    assert convert(source, tmp_path / "out", for_engine="openvino").config.mlp_bias


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"rmsnorm": False}, "LayerNorm (rmsnorm is false)"),
        ({"post_layer_norm": False}, "no final norm"),
        ({"quantization_bit": 4}, "quantised to 4 bits"),
        ({"pre_seq_len": 128}, "P-tuning"),
        ({"vision_config": {}}, "multimodal wrapper"),
    ],
)
def test_a_chatglm_outside_the_supported_form_is_refused_with_the_reason(
    tmp_path: Path, config: dict[str, object], expected: str
) -> None:
    assert expected in reasons_of(write_chatglm(tmp_path, tokenizer=False, **config))


def test_the_first_chatglm_is_refused_by_name(tmp_path: Path) -> None:
    config = {
        "architectures": ["ChatGLMModel"],
        "model_type": "chatglm",
        "position_encoding_2d": True,
        "inner_hidden_size": 16384,
        "hidden_size": 4096,
        "num_layers": 28,
        "vocab_size": 130528,
    }
    source = llama(tmp_path)
    (source / "config.json").write_text(json.dumps(config))
    assert "it is the first ChatGLM-6B (position_encoding_2d is set)" in reasons_of(source)


@pytest.mark.parametrize(
    ("config", "engine", "expected"),
    [
        ({"multi_query": False}, "tensorrt_llm", "multi_query_attention is false"),
        ({"kv_channels": 24}, "tensorrt_llm", "4 heads of 24, hidden size 64"),
        ({"apply_residual_connection_post_layernorm": True}, "openvino", "residual after the norm"),
    ],
)
def test_a_chatglm_that_one_engine_cannot_serve_is_refused_for_that_engine_alone(
    tmp_path: Path, config: dict[str, object], engine: str, expected: str
) -> None:
    source = write_chatglm(tmp_path / "hf", tokenizer=False, **config)
    with pytest.raises(UnsupportedModel, match=engine) as caught:
        convert(source, tmp_path / "out", for_engine=engine)
    assert expected in caught.value.reasons[0]
    other = "openvino" if engine == "tensorrt_llm" else "tensorrt_llm"
    assert convert(source, tmp_path / "out", for_engine=other).config.chatglm is not None


def test_glm_heads_that_do_not_divide_the_hidden_size_are_refused_for_tensorrt_llm(tmp_path: Path) -> None:
    source = write_glm(tmp_path / "hf", tokenizer=False, head_dim=24)
    with pytest.raises(UnsupportedModel, match="4 heads of 24"):
        convert(source, tmp_path / "out")
