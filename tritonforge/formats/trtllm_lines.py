"""config.json as single lines of TensorRT-LLM write it, where that differs from the 0.16 line.

Which features a line has is data (`tritonforge.releases.checkpoint_rules.config_features`).
"""

from __future__ import annotations

from collections.abc import Set

from tritonforge.formats.trtllm import CHATGLM_ROTARY_BASE, TrtllmConfig

# What the converter of these lines writes for a model without experts (2: experts divided as tensors are).
_NO_EXPERTS = {"moe_num_experts": 0, "moe_top_k": 0, "moe_normalization_mode": None, "moe_tp_mode": 2}
_KV_TYPES = {"INT8": "int8", "FP8": "fp8"}


def config_json(config: TrtllmConfig, features: Set[str]) -> dict[str, object]:
    """The content of config.json for a line.

    Args:
        config: The configuration.
        features: What the line has: of ``rotary_embedding_dim``, ``rope_ratio``, ``chatglm_for_causal_lm``,
            ``kv_dtype``, ``flat_moe``, ``exclude_lm_head``.
    """
    values = config.to_json()
    if "rotary_embedding_dim" not in features:
        del values["rotary_embedding_dim"]
    return _chatglm_json(values, config, features) if config.chatglm else _llama_json(values, config, features)


def _chatglm_json(values: dict[str, object], config: TrtllmConfig, features: Set[str]) -> dict[str, object]:
    if "chatglm_for_causal_lm" in features:
        values["architecture"] = "ChatGLMForCausalLM"
    if "rope_ratio" in features:
        # The version says what the ratio does: it divides the positions of ChatGLM2 and multiplies the base of others.
        scaling = config.rotary_scaling
        values["rope_ratio"] = scaling.factor if scaling else config.rotary_base / CHATGLM_ROTARY_BASE
        del values["rotary_base"], values["rotary_scaling"]
    return values


def _llama_json(values: dict[str, object], config: TrtllmConfig, features: Set[str]) -> dict[str, object]:
    if "kv_dtype" in features:
        values["kv_dtype"] = _KV_TYPES.get(config.kv_cache_quant_algo or "", config.dtype)
    if "flat_moe" in features:
        values |= _NO_EXPERTS
    quantization = values["quantization"]
    if "exclude_lm_head" in features and isinstance(quantization, dict):
        values["quantization"] = {"exclude_modules": ["lm_head"], **quantization}
    return values
