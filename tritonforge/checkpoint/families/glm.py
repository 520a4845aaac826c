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
)
from tritonforge.checkpoint.families.rotary import read_rotary
from tritonforge.checkpoint.families.scope import (
    EPSILONS,
    MOST_LAYERS,
    POSITIONS,
    activation_reasons,
    auto_dtype,
    chatglm_head_reasons,
)
from tritonforge.checkpoint.families.transformers_names import (
    EMBEDDING,
    attention_tensors,
    is_tied,
    model_tensors,
    norm_tensors,
)
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
    check_rotary_dim(fields, size, rotary.fraction)
    attention_bias = fields.flag("attention_bias", default=True)
    config = TrtllmConfig(
        architecture="ChatGLMForCausalLM",  # TensorRT-LLM's own name for the class; it does not know transformers' one
        dtype=auto_dtype(facts, EMBEDDING),
        vocab_size=fields.integer("vocab_size"),
        hidden_size=hidden,
        num_hidden_layers=fields.integer("num_hidden_layers", most=MOST_LAYERS),
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads(fields, "num_key_value_heads", heads, default=_KV_HEADS),
        head_size=size,
        intermediate_size=fields.integer("intermediate_size"),
        hidden_act="swiglu",
        norm_epsilon=fields.number("rms_norm_eps", _NORM_EPSILON, **EPSILONS),
        position_embedding_type="rope_gptj",
        max_position_embeddings=fields.integer("max_position_embeddings", _POSITIONS, **POSITIONS),
        rotary_base=rotary.theta,
        rotary_pct=rotary.fraction,
        rotary_scaling=rotary.scaling,
        attn_bias=attention_bias,
        mlp_bias=False,
        tied_embeddings=is_tied(facts),
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


def tensors(_facts: SourceFacts, config: TrtllmConfig) -> tuple[TargetTensor, ...]:
    """Every tensor of the target."""
    return model_tensors(config, _layer)


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
    name="chatglm",  # one family to users; its checkpoints come in two namings of tensors
    architectures=("GlmForCausalLM",),
    model_types={"glm": "GlmForCausalLM"},
    read=read,
    tensors=tensors,
)
