"""What a Llama GGUF file says of the model's form, and the config.json that says the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonforge.checkpoint.gguf.reader import GgufFile
from tritonforge.checkpoint.gguf.rotary import read_scaling
from tritonforge.errors import CorruptFile, MissingWeight, UnsupportedModel
from tritonforge.formats.rotary import RotaryScaling

EMBEDDING = "token_embd.weight"
OUTPUT = "output.weight"
_DEFAULT_ROTARY_BASE = 10000.0  # of files that leave the key out, as llama.cpp has it

# Keys that change what the model computes, with the value that changes nothing. Any other value is refused.
_NEUTRAL_VALUES: Mapping[str, object] = {
    "llama.expert_count": 0,
    "llama.attention.causal": True,
    "llama.attention.clamp_kqv": 0.0,
    "llama.attention.max_alibi_bias": 0.0,
    "llama.attention.scale": 0.0,
    "llama.attention.sliding_window": 0,
    "llama.attention.temperature_scale": 0.0,
    "llama.attn_logit_softcapping": 0.0,
    "llama.embedding_scale": 1.0,
    "llama.final_logit_softcapping": 0.0,
    "llama.logit_scale": 1.0,
    "llama.residual_scale": 1.0,
    "llama.rope.scaling.attn_factor": 1.0,
    "llama.tensor_data_layout": "",
    "llama.use_parallel_residual": False,
}


@dataclass(frozen=True, slots=True)
class LlamaForm:
    """The form of a Llama model.

    Args:
        vocab_size: Rows of the embedding.
        hidden_size: Width of the residual stream.
        intermediate_size: Width of the MLP.
        layers: Number of decoder layers.
        heads: Query heads.
        kv_heads: Key and value heads; divides `heads`.
        head_size: Dimensions of one head.
        max_positions: Longest sequence, in tokens.
        norm_epsilon: Epsilon of the RMS norms.
        rotary_base: Base of the rotary frequencies.
        rotary_scaling: How positions are scaled, or None.
        tied_embeddings: The output projection is the embedding.
        attention_bias: The attention projections have biases.
        mlp_bias: The MLP projections have biases.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    max_positions: int
    norm_epsilon: float
    rotary_base: float
    rotary_scaling: RotaryScaling | None
    tied_embeddings: bool
    attention_bias: bool
    mlp_bias: bool


def read_form(file: GgufFile) -> LlamaForm:
    """The form of the model in a GGUF file.

    Raises:
        UnsupportedModel: The file holds another architecture, or a variation that Hugging Face's Llama does not have;
            every reason is named.
        CorruptFile: A key is missing or has an impossible value.
        MissingWeight: The embedding is not in the file.
    """
    _refuse_other_models(file)
    fields = file.fields
    hidden_size, heads = fields.integer("llama.embedding_length"), fields.integer("llama.attention.head_count")
    kv_heads = fields.integer("llama.attention.head_count_kv", heads)
    if heads % kv_heads:
        raise CorruptFile(file.path, f"has {heads} query heads, which {kv_heads} key heads do not divide", hint=None)
    head_size = _head_size(file, hidden_size, heads)
    rotary_base = fields.number("llama.rope.freq_base", _DEFAULT_ROTARY_BASE)
    return LlamaForm(
        vocab_size=_embedding_rows(file),
        hidden_size=hidden_size,
        intermediate_size=fields.integer("llama.feed_forward_length"),
        layers=fields.integer("llama.block_count"),
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        max_positions=fields.integer("llama.context_length"),
        norm_epsilon=_epsilon(fields.number("llama.attention.layer_norm_rms_epsilon")),
        rotary_base=rotary_base,
        rotary_scaling=read_scaling(file, rotary_base=rotary_base, head_size=head_size),
        tied_embeddings=OUTPUT not in file.tensors,
        attention_bias=any(name.startswith("blk.0.attn_") and name.endswith(".bias") for name in file.tensors),
        mlp_bias=any(name.startswith("blk.0.ffn_") and name.endswith(".bias") for name in file.tensors),
    )


def config_json(form: LlamaForm, *, dtype: str, token_ids: Mapping[str, int]) -> dict[str, object]:
    """The config.json of a Hugging Face Llama checkpoint, in the layout that every transformers release reads.

    Args:
        form: The model.
        dtype: ``float16``, ``bfloat16`` or ``float32``.
        token_ids: ``bos_token_id``, ``eos_token_id`` and ``pad_token_id``, as far as they are known.
    """
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": form.attention_bias,
        "attention_dropout": 0.0,
        **token_ids,
        "head_dim": form.head_size,
        "hidden_act": "silu",
        "hidden_size": form.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": form.intermediate_size,
        "max_position_embeddings": form.max_positions,
        "mlp_bias": form.mlp_bias,
        "model_type": "llama",
        "num_attention_heads": form.heads,
        "num_hidden_layers": form.layers,
        "num_key_value_heads": form.kv_heads,
        "pretraining_tp": 1,
        "rms_norm_eps": form.norm_epsilon,
        "rope_scaling": form.rotary_scaling.to_json() if form.rotary_scaling else None,
        "rope_theta": form.rotary_base,
        "tie_word_embeddings": form.tied_embeddings,
        "torch_dtype": dtype,
        "use_cache": True,
        "vocab_size": form.vocab_size,
    }


def _refuse_other_models(file: GgufFile) -> None:
    values = file.fields.values
    architecture = file.fields.text("general.architecture")
    if architecture != "llama":
        raise UnsupportedModel(str(file.path), [f"its architecture is {architecture!r}; only 'llama' can be imported"])
    reasons = []
    if values.get("general.type", "model") != "model":
        reasons.append(f"it holds a {values['general.type']!r}, not a model")
    for key, neutral in _NEUTRAL_VALUES.items():
        if values.get(key, neutral) != neutral:
            reasons.append(f"{key} is {values[key]!r}")
    per_layer = ("feed_forward_length", "attention.head_count", "attention.head_count_kv")
    reasons += [f"llama.{key} differs by layer" for key in per_layer if isinstance(values.get(f"llama.{key}"), list)]
    if reasons:
        raise UnsupportedModel(str(file.path), reasons)


def _head_size(file: GgufFile, hidden_size: int, heads: int) -> int:
    fields = file.fields
    head_size = fields.integer("llama.attention.key_length", hidden_size // heads)
    value_size = fields.integer("llama.attention.value_length", head_size)
    rotated = fields.integer("llama.rope.dimension_count", head_size)
    reasons = []
    if value_size != head_size:
        reasons.append(f"its value heads have {value_size} dimensions, its key heads {head_size}")
    if rotated != head_size:
        reasons.append(f"it rotates {rotated} of {head_size} dimensions of a head")
    if head_size % 2:
        reasons.append(f"its heads have {head_size} dimensions, an odd number")
    if reasons:
        raise UnsupportedModel(str(file.path), reasons)
    return head_size


def _embedding_rows(file: GgufFile) -> int:
    tensor = file.tensors.get(EMBEDDING)
    if tensor is None:
        raise MissingWeight(EMBEDDING, folder=file.path)
    return tensor.shape[0]


def _epsilon(stored: float) -> float:
    """The short decimal that a float32 stands for: 9.999999747378752e-06 was written as 1e-05."""
    return float(f"{stored:.6g}")
