"""GLM-4 as transformers itself names it (``GlmForCausalLM``), brought into the form of ChatGLM.

The mathematics is ChatGLM's: interleaved rotary on the first half of each head, gate and up in one projection. So the
target is a ChatGLM checkpoint of version glm4, and one path serves both namings.
"""

from __future__ import annotations

from tritonforge.checkpoint.families.attention import check_rotary_dim, head_size, key_value_heads
from tritonforge.checkpoint.families.base import (
    TENSORRT_LLM,
    Arrangement,
    Family,
    Reading,
    SourceFacts,
    TargetTensor,
    linear,
    single,
)
from tritonforge.checkpoint.families.llama import attention_tensors, norm_tensors
from tritonforge.checkpoint.families.rotary import read_rotary
from tritonforge.checkpoint.families.scope import activation_reasons, auto_dtype, chatglm_head_reasons
from tritonforge.formats.trtllm import ChatGlmFields, TrtllmConfig

# What transformers assumes where config.json is silent.
_POSITIONS = 131072
_KV_HEADS = 2
_HEAD_SIZE = 128
_NORM_EPSILON = 1.5625e-07


def read(facts: SourceFacts) -> Reading:
    """config.json → TensorRT-LLM's configuration."""
    fields = facts.fields
    hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    rotary = read_rotary(fields, default_fraction=0.5)
    size = head_size(fields, "head_dim", hidden, heads) if "head_dim" in fields else _HEAD_SIZE
    wrong = check_rotary_dim(fields, size, rotary.fraction)
    if wrong is not None:
        raise wrong
    attention_bias = fields.flag("attention_bias", default=True)
    config = TrtllmConfig(
        architecture="ChatGLMForCausalLM",  # TensorRT-LLM's own name for the class; it does not know transformers' one
        dtype=auto_dtype(facts, "model.embed_tokens.weight"),
        vocab_size=fields.integer("vocab_size"),
        hidden_size=hidden,
        num_hidden_layers=fields.integer("num_hidden_layers"),
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads(fields, "num_key_value_heads", heads, default=_KV_HEADS),
        head_size=size,
        intermediate_size=fields.integer("intermediate_size"),
        hidden_act="swiglu",
        norm_epsilon=fields.number("rms_norm_eps", _NORM_EPSILON),
        position_embedding_type="rope_gptj",
        max_position_embeddings=fields.integer("max_position_embeddings", _POSITIONS),
        rotary_base=rotary.theta,
        rotary_pct=rotary.fraction,
        rotary_scaling=rotary.scaling,
        attn_bias=attention_bias,
        mlp_bias=False,
        tied_embeddings=fields.flag("tie_word_embeddings", default=False) and not facts.holds("lm_head.weight"),
        chatglm=ChatGlmFields(
            chatglm_version="glm4",
            add_bias_linear=False,
            add_qkv_bias=attention_bias,
            rmsnorm=True,
            apply_residual_connection_post_layernorm=False,
        ),
    )
    reasons = (*rotary.reasons, *activation_reasons(fields))
    return Reading(config, reasons, {TENSORRT_LLM: chatglm_head_reasons(config)})


def tensors(facts: SourceFacts, config: TrtllmConfig) -> tuple[TargetTensor, ...]:  # noqa: ARG001 - Family's signature
    """Every tensor of the target."""
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
    source, target = f"model.layers.{i}.mlp", f"transformer.layers.{i}.mlp"
    hidden, width = config.hidden_size, config.intermediate_size
    reason = f"intermediate_size {width}"
    gate_up = ((f"{source}.gate_up_proj", 2 * width),)
    return (
        *attention_tensors(i, config, output_bias=False),
        *linear(f"{target}.fc", gate_up, hidden, reason, bias=False, arrangement=Arrangement.SWAP_HALVES),
        *linear(f"{target}.proj", ((f"{source}.down_proj", hidden),), width, reason, bias=False),
        *norm_tensors(i, config),
    )


GLM = Family(
    name="glm",
    architectures=("GlmForCausalLM",),
    model_types={"glm": "GlmForCausalLM"},
    read=read,
    tensors=tensors,
)
