"""ChatGLM2, ChatGLM3 and GLM-4 in their original naming (``transformer.encoder.layers.…``)."""

from __future__ import annotations

from tritonforge.checkpoint.families.attention import fused_reason, head_size, key_value_heads
from tritonforge.checkpoint.families.base import (
    OPENVINO,
    TENSORRT_LLM,
    Arrangement,
    Family,
    Reading,
    SourceFacts,
    TargetTensor,
    linear,
    single,
)
from tritonforge.checkpoint.families.chatglm_version import find_version
from tritonforge.checkpoint.families.scope import EPSILONS, MOST_LAYERS, POSITIONS, auto_dtype, chatglm_head_reasons
from tritonforge.errors import UnsupportedModel
from tritonforge.formats.json_fields import JsonFields
from tritonforge.formats.rotary import FACTORS, LINEAR, RotaryScaling
from tritonforge.formats.trtllm import CHATGLM_ROTARY_BASE, ChatGlmFields, TrtllmConfig

_EMBEDDING = "transformer.embedding.word_embeddings.weight"
_HEAD = "transformer.output_layer.weight"
# Keys that only the first ChatGLM-6B has.
_FIRST_GENERATION = ("position_encoding_2d", "inner_hidden_size", "max_sequence_length")


def read(facts: SourceFacts) -> Reading:
    """config.json → TensorRT-LLM's configuration."""
    fields = facts.fields
    _refuse_first_generation(facts)
    hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    shared = fields.flag("multi_query_attention", default=False)
    kv_heads = key_value_heads(fields, "multi_query_group_num", heads, default=1) if shared else heads
    version = find_version(facts)
    base, scaling = _rotary(fields, version)
    bias = fields.flag("add_bias_linear", default=False)
    # The original module adds the bias of query, key and value when either flag is set.
    qkv_bias = fields.flag("add_qkv_bias", default=False) or bias
    config = TrtllmConfig(
        architecture=facts.architecture,
        dtype=auto_dtype(facts, _EMBEDDING),
        vocab_size=fields.integer("padded_vocab_size"),
        hidden_size=hidden,
        num_hidden_layers=fields.integer("num_layers", most=MOST_LAYERS),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_size=head_size(fields, "kv_channels", hidden, heads),
        intermediate_size=fields.integer("ffn_hidden_size"),
        hidden_act="swiglu",
        norm_epsilon=fields.number("layernorm_epsilon", 1e-5, **EPSILONS),
        position_embedding_type="rope_gptj",
        max_position_embeddings=fields.integer("seq_length", **POSITIONS),
        rotary_base=base,
        rotary_pct=0.5,
        rotary_scaling=scaling,
        attn_bias=qkv_bias,
        mlp_bias=bias,
        tied_embeddings=fields.flag("tie_word_embeddings", default=False) and not facts.holds(_HEAD),
        chatglm=ChatGlmFields(
            chatglm_version=version,
            add_bias_linear=bias,
            add_qkv_bias=qkv_bias,
            rmsnorm=fields.flag("rmsnorm", default=True),
            apply_residual_connection_post_layernorm=_post_norm_residual(fields),
        ),
    )
    return Reading(config, _reasons(fields), _engine_reasons(config, shared=shared, fields=fields))


def _refuse_first_generation(facts: SourceFacts) -> None:
    found = [key for key in _FIRST_GENERATION if key in facts.fields]
    if found and "padded_vocab_size" not in facts.fields:
        reason = f"it is the first ChatGLM-6B ({found[0]} is set): two-dimensional positions, a prefix that sees itself"
        subject = f"{facts.folder} ({facts.architecture})"
        raise UnsupportedModel(subject, [reason], hint="ChatGLM2, ChatGLM3 and GLM-4 are supported")


def _rotary(fields: JsonFields, version: str) -> tuple[float, RotaryScaling | None]:
    """`rope_ratio` divides the positions in ChatGLM2, and multiplies the base in ChatGLM3 and GLM-4."""
    ratio = fields.number("rope_ratio", 1.0, **FACTORS)
    if version != "chatglm2":
        return CHATGLM_ROTARY_BASE * ratio, None
    return CHATGLM_ROTARY_BASE, RotaryScaling(LINEAR, ratio) if ratio != 1 else None


def _post_norm_residual(fields: JsonFields) -> bool:
    return fields.flag("apply_residual_connection_post_layernorm", default=False)


def _reasons(fields: JsonFields) -> tuple[str, ...]:
    reasons = []
    if not fields.flag("rmsnorm", default=True):
        reasons.append("it has LayerNorm (rmsnorm is false); expected RMSNorm")
    if not fields.flag("post_layer_norm", default=True):
        reasons.append("it has no final norm (post_layer_norm is false)")
    if fields.integer("quantization_bit", 0, least=0):
        reasons.append(
            f"its weights are quantised to {fields.integer('quantization_bit')} bits; expected float weights"
        )
    if "pre_seq_len" in fields:
        reasons.append("it needs a trained prefix (pre_seq_len is set, P-tuning)")
    return tuple(reasons)


def _engine_reasons(config: TrtllmConfig, *, shared: bool, fields: JsonFields) -> dict[str, tuple[str, ...]]:
    tensorrt_llm = list(chatglm_head_reasons(config))
    if not shared:
        tensorrt_llm.append(
            "every head has its own key and value (multi_query_attention is false), which TensorRT-LLM's own converter "
            "gets wrong"
        )
    openvino: tuple[str, ...] = ()
    if _post_norm_residual(fields):
        openvino = ("it takes the residual after the norm (apply_residual_connection_post_layernorm)",)
    return {TENSORRT_LLM: tuple(tensorrt_llm), OPENVINO: openvino}


def tensors(facts: SourceFacts, config: TrtllmConfig) -> tuple[TargetTensor, ...]:
    """Every tensor of the target."""
    hidden, vocab = config.hidden_size, config.vocab_size
    rows = f"padded_vocab_size {vocab}"
    zipped = not facts.fields.flag("multi_query_attention", default=False)
    layers = (tensor for i in range(config.num_hidden_layers) for tensor in _layer(i, config, zipped=zipped))
    norm = "transformer.encoder.final_layernorm.weight"
    return (
        single("transformer.vocab_embedding.weight", _EMBEDDING, (vocab, hidden), rows),
        *layers,
        single("transformer.ln_f.weight", norm, (hidden,), f"hidden_size {hidden}"),
        single("lm_head.weight", _EMBEDDING if config.tied_embeddings else _HEAD, (vocab, hidden), rows),
    )


def _layer(i: int, config: TrtllmConfig, *, zipped: bool) -> tuple[TargetTensor, ...]:
    source, target = f"transformer.encoder.layers.{i}", f"transformer.layers.{i}"
    heads, kv_heads, size = config.num_attention_heads, config.num_key_value_heads, config.head_size
    hidden, width, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
    reason = fused_reason(heads, kv_heads, size)
    rows = ((f"{source}.self_attention.query_key_value", (heads + 2 * kv_heads) * size),)
    order = Arrangement.UNZIP_HEADS if zipped else Arrangement.CONCATENATE
    dense = ((f"{source}.self_attention.dense", hidden),)
    gate_up, down = ((f"{source}.mlp.dense_h_to_4h", 2 * width),), ((f"{source}.mlp.dense_4h_to_h", hidden),)
    of_width, of_hidden = f"ffn_hidden_size {width}", f"hidden_size {hidden}"
    swapped = Arrangement.SWAP_HALVES
    input_norm, post_norm = f"{source}.input_layernorm.weight", f"{source}.post_attention_layernorm.weight"
    return (
        *linear(f"{target}.attention.qkv", rows, hidden, reason, bias=config.attn_bias, arrangement=order),
        *linear(f"{target}.attention.dense", dense, heads * size, reason, bias=bias),
        *linear(f"{target}.mlp.fc", gate_up, hidden, of_width, bias=bias, arrangement=swapped),
        *linear(f"{target}.mlp.proj", down, width, of_width, bias=bias),
        single(f"{target}.input_layernorm.weight", input_norm, (hidden,), of_hidden),
        single(f"{target}.post_layernorm.weight", post_norm, (hidden,), of_hidden),
    )


CHATGLM = Family(
    name="chatglm",
    architectures=("ChatGLMModel", "ChatGLMForConditionalGeneration", "ChatGLMForCausalLM"),
    model_types={"chatglm": "ChatGLMModel"},
    read=read,
    tensors=tensors,
)
