"""The module names that transformers gives to Llama and to GLM alike: embedding, attention, norms, head."""

from __future__ import annotations

from collections.abc import Callable

from tritonforge.checkpoint.families.attention import fused_reason
from tritonforge.checkpoint.families.base import SourceFacts, TargetTensor, linear, single
from tritonforge.formats.trtllm import TrtllmConfig

EMBEDDING = "model.embed_tokens.weight"
_HEAD = "lm_head.weight"


def is_tied(facts: SourceFacts) -> bool:
    """Whether lm_head is the embedding. One that is stored all the same is used as it is, as transformers does."""
    return facts.fields.flag("tie_word_embeddings", default=False) and not facts.holds(_HEAD)


def model_tensors(
    config: TrtllmConfig, layer_tensors: Callable[[int, TrtllmConfig], tuple[TargetTensor, ...]]
) -> tuple[TargetTensor, ...]:
    """Every tensor of the target, the layers as `layer_tensors` gives them."""
    table, reason = (config.vocab_size, config.hidden_size), f"vocab_size {config.vocab_size}"
    return (
        single("transformer.vocab_embedding.weight", EMBEDDING, table, reason),
        *(tensor for i in range(config.num_hidden_layers) for tensor in layer_tensors(i, config)),
        single("transformer.ln_f.weight", "model.norm.weight", table[1:], f"hidden_size {config.hidden_size}"),
        single("lm_head.weight", EMBEDDING if config.tied_embeddings else _HEAD, table, reason),
    )


def attention_tensors(i: int, config: TrtllmConfig, *, output_bias: bool) -> tuple[TargetTensor, ...]:
    """Attention of layer `i`: query, key and value fused in this order, and the output.

    Args:
        i: The layer.
        config: The target's configuration; its `attn_bias` speaks of query, key and value.
        output_bias: Whether the output has a bias.
    """
    source, target = f"model.layers.{i}.self_attn", f"transformer.layers.{i}.attention"
    query_rows, kv_rows = config.num_attention_heads * config.head_size, config.num_key_value_heads * config.head_size
    rows = ((f"{source}.q_proj", query_rows), (f"{source}.k_proj", kv_rows), (f"{source}.v_proj", kv_rows))
    reason = fused_reason(config.num_attention_heads, config.num_key_value_heads, config.head_size)
    output = ((f"{source}.o_proj", config.hidden_size),)
    return (
        *linear(f"{target}.qkv", rows, config.hidden_size, reason, bias=config.attn_bias),
        *linear(f"{target}.dense", output, query_rows, reason, bias=output_bias),
    )


def norm_tensors(i: int, config: TrtllmConfig) -> tuple[TargetTensor, ...]:
    """The two norms of layer `i`."""
    source, target = f"model.layers.{i}", f"transformer.layers.{i}"
    shape, reason = (config.hidden_size,), f"hidden_size {config.hidden_size}"
    return (
        single(f"{target}.input_layernorm.weight", f"{source}.input_layernorm.weight", shape, reason),
        single(f"{target}.post_layernorm.weight", f"{source}.post_attention_layernorm.weight", shape, reason),
    )
