"""Llama, and what shares its form.

Accepted by their ``architectures``:

- ``LlamaForCausalLM`` (and its early spelling ``LLaMAForCausalLM``): Llama 1 to 3.x, SmolLM2, TinyLlama, Yi, Vicuna, …
- ``MistralForCausalLM`` without a sliding window in use: the same modules and tensor names as Llama, no biases; in
  TensorRT-LLM it is served by the same class.

Other families with the same tensor names differ in ways that the names do not show (Granite multiplies activations,
Qwen2 has no bias on the attention output, InternLM and Exaone rely on code of their own), so they are not accepted.
"""

from __future__ import annotations

from tritonforge.checkpoint.families.attention import fused_reason, head_size, key_value_heads
from tritonforge.checkpoint.families.base import (
    TENSORRT_LLM,
    Family,
    Reading,
    SourceFacts,
    TargetTensor,
    linear,
    single,
)
from tritonforge.checkpoint.families.rotary import read_rotary
from tritonforge.checkpoint.families.scope import activation_reasons, auto_dtype
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
        dtype=auto_dtype(facts, "model.embed_tokens.weight"),
        vocab_size=fields.integer("vocab_size"),
        hidden_size=hidden,
        num_hidden_layers=fields.integer("num_hidden_layers"),
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads(fields, "num_key_value_heads", heads, default=default_kv_heads),
        head_size=head_size(fields, "head_dim", hidden, heads),
        intermediate_size=fields.integer("intermediate_size"),
        hidden_act="silu",
        norm_epsilon=fields.number("rms_norm_eps", 1e-6),
        position_embedding_type="rope_gpt_neox",
        max_position_embeddings=fields.integer("max_position_embeddings", _POSITIONS[architecture]),
        rotary_base=rotary.theta,
        rotary_pct=1.0,
        rotary_scaling=rotary.scaling,
        # One flag for query, key, value and the output, in Llama's own modules and in TensorRT-LLM's alike.
        attn_bias=fields.flag("attention_bias", default=False),
        mlp_bias=fields.flag("mlp_bias", default=False),
        tied_embeddings=fields.flag("tie_word_embeddings", default=False) and not facts.holds("lm_head.weight"),
    )
    silent = "has MLP biases (mlp_bias), which TensorRT-LLM's loader drops without a word: answers would be wrong"
    engine_reasons = {TENSORRT_LLM: (silent,)} if config.mlp_bias else {}
    return Reading(config, tuple(reasons), engine_reasons)


def tensors(facts: SourceFacts, config: TrtllmConfig) -> tuple[TargetTensor, ...]:  # noqa: ARG001 - Family's signature
    """Every tensor of the target. The gate that is activated becomes ``fc``, the other half ``gate``."""
    hidden, vocab = config.hidden_size, config.vocab_size
    head = "model.embed_tokens.weight" if config.tied_embeddings else "lm_head.weight"
    rows = f"vocab_size {vocab}"
    layers = (tensor for i in range(config.num_hidden_layers) for tensor in _layer(i, config))
    return (
        single("transformer.vocab_embedding.weight", "model.embed_tokens.weight", (vocab, hidden), rows),
        *layers,
        single("transformer.ln_f.weight", "model.norm.weight", (hidden,), f"hidden_size {hidden}"),
        single("lm_head.weight", head, (vocab, hidden), rows),
    )


def _layer(i: int, config: TrtllmConfig) -> tuple[TargetTensor, ...]:
    source, target = f"model.layers.{i}", f"transformer.layers.{i}"
    return (
        *attention_tensors(i, config),
        *_mlp(f"{target}.mlp.fc", f"{source}.mlp.gate_proj", config),
        *_mlp(f"{target}.mlp.gate", f"{source}.mlp.up_proj", config),
        *linear(
            f"{target}.mlp.proj",
            ((f"{source}.mlp.down_proj", config.hidden_size),),
            config.intermediate_size,
            f"intermediate_size {config.intermediate_size}",
            bias=config.mlp_bias,
        ),
        *norm_tensors(i, config),
    )


def attention_tensors(i: int, config: TrtllmConfig, *, output_bias: bool | None = None) -> tuple[TargetTensor, ...]:
    """Attention of one layer in transformers' naming: q, k and v fused in this order. GLM has the same.

    Args:
        i: The layer.
        config: The target's configuration.
        output_bias: Whether the output has a bias; None: as query, key and value.
    """
    source, target = f"model.layers.{i}.self_attn", f"transformer.layers.{i}.attention"
    query_rows, kv_rows = config.num_attention_heads * config.head_size, config.num_key_value_heads * config.head_size
    rows = ((f"{source}.q_proj", query_rows), (f"{source}.k_proj", kv_rows), (f"{source}.v_proj", kv_rows))
    reason = fused_reason(config.num_attention_heads, config.num_key_value_heads, config.head_size)
    dense_bias = config.attn_bias if output_bias is None else output_bias
    output = ((f"{source}.o_proj", config.hidden_size),)
    return (
        *linear(f"{target}.qkv", rows, config.hidden_size, reason, bias=config.attn_bias),
        *linear(f"{target}.dense", output, query_rows, reason, bias=dense_bias),
    )


def norm_tensors(i: int, config: TrtllmConfig) -> tuple[TargetTensor, ...]:
    """The two norms of one layer in transformers' naming."""
    source, target = f"model.layers.{i}", f"transformer.layers.{i}"
    shape, reason = (config.hidden_size,), f"hidden_size {config.hidden_size}"
    return (
        single(f"{target}.input_layernorm.weight", f"{source}.input_layernorm.weight", shape, reason),
        single(f"{target}.post_layernorm.weight", f"{source}.post_attention_layernorm.weight", shape, reason),
    )


def _mlp(target: str, source: str, config: TrtllmConfig) -> tuple[TargetTensor, ...]:
    width = config.intermediate_size
    reason = f"intermediate_size {width}"
    return linear(target, ((source, width),), config.hidden_size, reason, bias=config.mlp_bias)


LLAMA = Family(
    name="llama",
    architectures=(_LLAMA, "LLaMAForCausalLM", _MISTRAL),
    model_types={"llama": _LLAMA, "mistral": _MISTRAL},
    read=read,
    tensors=tensors,
)
