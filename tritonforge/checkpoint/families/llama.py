"""Llama, and what shares its form.

Accepted by their ``architectures``:

- ``LlamaForCausalLM`` (and its early spelling ``LLaMAForCausalLM``): Llama 1 to 3.x, SmolLM2, TinyLlama, Yi, Vicuna, …
- ``MistralForCausalLM`` without a sliding window in use: the same modules and tensor names as Llama, no biases; in
  TensorRT-LLM it is served by the same class.

Other families with the same tensor names differ in ways that the names do not show (Granite multiplies activations,
Qwen2 has no bias on the attention output, InternLM and Exaone rely on code of their own), so they are not accepted.
"""

from __future__ import annotations

from tritonforge.checkpoint.families.attention import head_size, key_value_heads
from tritonforge.checkpoint.families.base import TENSORRT_LLM, Family, Reading, SourceFacts, TargetTensor, linear
from tritonforge.checkpoint.families.rotary import read_rotary
from tritonforge.checkpoint.families.scope import EPSILONS, MOST_LAYERS, POSITIONS, activation_reasons, auto_dtype
from tritonforge.checkpoint.families.transformers_names import (
    EMBEDDING,
    attention_tensors,
    is_tied,
    model_tensors,
    norm_tensors,
)
from tritonforge.formats.trtllm import TrtllmConfig

_LLAMA = "LlamaForCausalLM"
_MISTRAL = "MistralForCausalLM"
# What transformers assumes where config.json is silent.
_MISTRAL_KV_HEADS = 8
_POSITIONS = {_LLAMA: 2048, _MISTRAL: 131072}


def read(facts: SourceFacts) -> Reading:
    """config.json → TensorRT-LLM's configuration."""
    fields = facts.fields
    architecture = _MISTRAL if facts.architecture == _MISTRAL else _LLAMA
    hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    default_kv_heads = _MISTRAL_KV_HEADS if architecture == _MISTRAL else heads
    rotary = read_rotary(fields, default_fraction=1.0)
    reasons = [*rotary.reasons, *activation_reasons(fields)]
    if rotary.fraction != 1.0:
        reasons.append(f"only {rotary.fraction:g} of each head rotates (partial_rotary_factor)")
    config = TrtllmConfig(
        architecture=architecture,
        dtype=auto_dtype(facts, EMBEDDING),
        vocab_size=fields.integer("vocab_size"),
        hidden_size=hidden,
        num_hidden_layers=fields.integer("num_hidden_layers", most=MOST_LAYERS),
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads(fields, "num_key_value_heads", heads, default=default_kv_heads),
        head_size=head_size(fields, "head_dim", hidden, heads),
        intermediate_size=fields.integer("intermediate_size"),
        hidden_act="silu",
        norm_epsilon=fields.number("rms_norm_eps", 1e-6, **EPSILONS),
        position_embedding_type="rope_gpt_neox",
        max_position_embeddings=fields.integer("max_position_embeddings", _POSITIONS[architecture], **POSITIONS),
        rotary_base=rotary.theta,
        rotary_pct=1.0,
        rotary_scaling=rotary.scaling,
        # One flag for query, key, value and the output, in Llama's own modules and in TensorRT-LLM's alike.
        attn_bias=fields.flag("attention_bias", default=False),
        mlp_bias=fields.flag("mlp_bias", default=False),
        tied_embeddings=is_tied(facts),
    )
    silent = "has MLP biases (mlp_bias), which TensorRT-LLM's loader drops without a word: answers would be wrong"
    engine_reasons = {TENSORRT_LLM: (silent,)} if config.mlp_bias else {}
    return Reading(config, tuple(reasons), engine_reasons)


def tensors(_facts: SourceFacts, config: TrtllmConfig) -> tuple[TargetTensor, ...]:
    """Every tensor of the target."""
    return model_tensors(config, _layer)


def _layer(i: int, config: TrtllmConfig) -> tuple[TargetTensor, ...]:
    """One layer. The gate, which is activated, becomes ``fc``; the other half becomes ``gate``."""
    source, target = f"model.layers.{i}.mlp", f"transformer.layers.{i}.mlp"
    hidden, width, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
    reason = f"intermediate_size {width}"
    return (
        *attention_tensors(i, config, output_bias=config.attn_bias),
        *linear(f"{target}.fc", ((f"{source}.gate_proj", width),), hidden, reason, bias=bias),
        *linear(f"{target}.gate", ((f"{source}.up_proj", width),), hidden, reason, bias=bias),
        *linear(f"{target}.proj", ((f"{source}.down_proj", hidden),), width, reason, bias=bias),
        *norm_tensors(i, config),
    )


LLAMA = Family(
    name="llama",
    architectures=(_LLAMA, "LLaMAForCausalLM", _MISTRAL),
    model_types={"llama": _LLAMA, "mistral": _MISTRAL},
    read=read,
    tensors=tensors,
)
