"""Where the supported form ends: checks that several families share, and refusals that name their reason."""

from __future__ import annotations

from collections.abc import Mapping

from tritonforge.checkpoint.families.base import SourceFacts
from tritonforge.formats.json_fields import JsonFields
from tritonforge.formats.trtllm import FLOAT_TYPES, TrtllmConfig

# A wrong number of layers must not make us plan millions of tensors; the deepest models have some hundred.
MOST_LAYERS = 10_000
# A prompt and an answer of one token each; a position is an INT32.
POSITIONS: Mapping[str, int] = {"least": 2, "most": 2**31 - 1}
# Published epsilons of norms are from 1e-12 to 1e-5.
EPSILONS: Mapping[str, float] = {"least": 1e-20, "most": 1.0}
_WRAPPED = ("vision_config", "audio_config", "text_config", "llm_config", "thinker_config")
_QUANTISED = ("quantization_config", "compression_config")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_SMOOTH_ACTIVATIONS = ("silu", "swish")
# Near relatives, by the difference that the supported form cannot express.
_RELATIVES = {
    "Glm4ForCausalLM": "its layers carry a second pair of norms after attention and MLP (sandwich norms)",
    "Glm4MoeForCausalLM": "it is a mixture of experts",
    "MixtralForCausalLM": "it is a mixture of experts",
    "Qwen2ForCausalLM": "it has biases on query, key and value but not on the attention output",
    "Qwen3ForCausalLM": "it normalises queries and keys",
    "GraniteForCausalLM": "it multiplies embeddings, residuals and logits by constants",
    "CohereForCausalLM": "its layers run attention and MLP in parallel",
    "Gemma2ForCausalLM": "it caps logits and alternates sliding windows",
}


def general_reasons(fields: JsonFields) -> tuple[str, ...]:
    """What rules a checkpoint out whatever its family is."""
    reasons = list(wrapper_reasons(fields))
    for key in _QUANTISED:
        quantisation = fields.nested(key)
        if quantisation is not None:
            method = quantisation.values.get("quant_method", "unnamed method")
            reasons.append(f"its weights are quantised ({method}); expected float weights")
    for key in _EXPERTS:
        if key in fields and fields.integer(key, least=0) > 1:
            reasons.append(f"it is a mixture of experts ({key} is {fields.integer(key)})")
    dtype = _named_dtype(fields)
    if dtype and dtype not in FLOAT_TYPES:
        reasons.append(f"its dtype is {dtype!r}; expected {', '.join(FLOAT_TYPES)}")
    return (*reasons, *_window_reasons(fields))


def wrapper_reasons(fields: JsonFields) -> tuple[str, ...]:
    """What rules a checkpoint out even where nothing of it is converted: its model is more than a language model."""
    return tuple(f"it is a multimodal wrapper (it has a {key})" for key in _WRAPPED if key in fields)[:1]


def _window_reasons(fields: JsonFields) -> list[str]:
    """A sliding window counts only where a position can fall out of it."""
    windowed = [kind for kind in fields.strings("layer_types") if kind != "full_attention"]
    if windowed:
        return [f"{len(windowed)} of its layers are of type {windowed[0]!r}; expected full_attention"]
    # MistralConfig assumes a window of 4096 where config.json does not name one; a null switches it off.
    implied = fields.values.get("model_type") == "mistral" and "sliding_window" not in fields.values
    if not implied and "sliding_window" not in fields:
        return []
    window = fields.integer("sliding_window", 4096)
    positions = fields.integer("max_position_embeddings", 131072, **POSITIONS)
    if window >= positions or not fields.flag("use_sliding_window", default=True):
        return []
    return [f"its attention uses a sliding window of {window} tokens (it was trained for {positions} positions)"]


def unknown_architecture(architecture: str, known: tuple[str, ...]) -> str:
    """Why an architecture that no family claims is refused."""
    if architecture in _RELATIVES:
        return _RELATIVES[architecture]
    return f"architecture {architecture!r} is none of {', '.join(known)}"


def already_converted(fields: JsonFields) -> str | None:
    """Why the config.json is none of Hugging Face's, when it is TensorRT-LLM's; None otherwise."""
    if "architectures" in fields:
        return None
    if "pretrained_config" in fields and "build_config" in fields:
        return "it is the folder of a TensorRT-LLM engine; expected a Hugging Face folder"
    if "architecture" in fields and "mapping" in fields:
        return (
            f"it is a TensorRT-LLM checkpoint ({fields.text('architecture')}): config.json has architecture and "
            f"mapping; expected a Hugging Face folder"
        )
    return None


def activation_reasons(fields: JsonFields) -> tuple[str, ...]:
    """The MLP must be activated by SiLU."""
    activation = fields.text("hidden_act", "silu")
    return () if activation in _SMOOTH_ACTIVATIONS else (f"hidden_act is {activation!r}; expected silu",)


def chatglm_head_reasons(config: TrtllmConfig) -> tuple[str, ...]:
    """TensorRT-LLM's ChatGLM has no field for the head size: it divides."""
    if config.head_size * config.num_attention_heads == config.hidden_size:
        return ()
    found = f"{config.num_attention_heads} heads of {config.head_size}, hidden size {config.hidden_size}"
    return (f"its heads do not divide the hidden size ({found}), which TensorRT-LLM's ChatGLM takes for granted",)


def auto_dtype(facts: SourceFacts, embedding: str) -> str:
    """The dtype of the target when none is asked for, by TensorRT-LLM's rule: the source's, but float16 for float32.

    Args:
        facts: The checkpoint.
        embedding: Tensor whose dtype counts when config.json names none.
    """
    named = _named_dtype(facts.fields)
    if named in FLOAT_TYPES:
        return "float16" if named == "float32" else named
    stored = facts.weights.info(embedding).dtype if facts.weights is not None and facts.holds(embedding) else ""
    return "bfloat16" if stored == FLOAT_TYPES["bfloat16"] else "float16"


def _named_dtype(fields: JsonFields) -> str:
    # `dtype` is the key of transformers 5, `torch_dtype` the older one.
    return fields.text("dtype", fields.text("torch_dtype", "")).removeprefix("torch.")
