"""config.json of a TensorRT-LLM checkpoint as a value.

Written with the keys of TensorRT-LLM's 0.16 line, less those that other lines reject: the nested objects ``mapping``
and ``quantization`` are passed to constructors there, so an unknown key in them is an error, while unknown keys at the
top are only warned about (read in 0.16's modeling_utils.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonforge.errors import CheckpointError
from tritonforge.formats.json_fields import JsonFields, read_json_object
from tritonforge.formats.rotary import LINEAR, RotaryScaling
from tritonforge.formats.trtllm_quantization import QuantDetails

CONFIG_NAME = "config.json"
# TensorRT-LLM's spelling of float types → the spelling of safetensors.
FLOAT_TYPES: Mapping[str, str] = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
CHATGLM_ROTARY_BASE = 10000.0
# What TensorRT-LLM takes for a key of llama3 scaling that is missing.
LLAMA3_DEFAULTS: Mapping[str, float] = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def rank_file_name(rank: int) -> str:
    """Name of the weight file of one rank."""
    return f"rank{rank}.safetensors"


@dataclass(frozen=True, slots=True)
class ChatGlmFields:
    """What only ChatGLM checkpoints carry.

    Args:
        chatglm_version: ``chatglm2``, ``chatglm3`` or ``glm4``.
        add_bias_linear: Biases on the attention output and on both MLP projections.
        add_qkv_bias: Biases on query, key and value.
        rmsnorm: RMSNorm instead of LayerNorm.
        apply_residual_connection_post_layernorm: The residual is taken after the norm instead of before it.
    """

    chatglm_version: str
    add_bias_linear: bool
    add_qkv_bias: bool
    rmsnorm: bool
    apply_residual_connection_post_layernorm: bool


@dataclass(frozen=True, slots=True)
class TrtllmConfig:
    """The configuration of one TensorRT-LLM checkpoint.

    Args:
        architecture: Key of TensorRT-LLM's model table: ``LlamaForCausalLM``, ``ChatGLMModel``, …
        dtype: Type of the float tensors: float16, bfloat16 or float32.
        vocab_size: Rows of the embedding; ChatGLM: the padded size.
        hidden_size: Width of the residual stream.
        num_hidden_layers: Number of decoder layers.
        num_attention_heads: Query heads.
        num_key_value_heads: Key and value heads; divides `num_attention_heads`.
        head_size: Width of one head.
        intermediate_size: Width of the MLP, of one half where gate and up are fused.
        hidden_act: ``silu`` (fc and gate apart: Llama) or ``swiglu`` (fused in fc, rows [up ; gate]: ChatGLM).
        norm_epsilon: Epsilon of the norms.
        position_embedding_type: ``rope_gpt_neox`` (halves rotate together) or ``rope_gptj`` (neighbours do).
        max_position_embeddings: Positions that the model was trained for.
        rotary_base: Base of the rotary frequencies.
        rotary_pct: Fraction of each head that rotates.
        rotary_scaling: Stretching of positions, if any.
        attn_bias: Query, key and value have biases; Llama: the attention output too.
        mlp_bias: The MLP projections have biases.
        tied_embeddings: The source shares embedding and lm_head. The checkpoint holds both all the same.
        chatglm: The fields of a ChatGLM checkpoint; None for Llama.
        tp_size: Ranks that share each layer.
        pp_size: Ranks that share the stack of layers.
        use_parallel_embedding: Tensor-parallel ranks share the embedding.
        embedding_sharding_dim: How they do: 0 by token, 1 by dimension.
        quant_algo: TensorRT-LLM's name of the weight quantisation, if any.
        kv_cache_quant_algo: TensorRT-LLM's name of the KV-cache quantisation, if any.
        quant_details: What else is to be said of the quantisation.
    """

    architecture: str
    dtype: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_size: int
    intermediate_size: int
    hidden_act: str
    norm_epsilon: float
    position_embedding_type: str
    max_position_embeddings: int
    rotary_base: float
    rotary_pct: float
    rotary_scaling: RotaryScaling | None
    attn_bias: bool
    mlp_bias: bool
    tied_embeddings: bool
    chatglm: ChatGlmFields | None = None
    tp_size: int = 1
    pp_size: int = 1
    use_parallel_embedding: bool = False
    embedding_sharding_dim: int = 0
    quant_algo: str | None = None
    kv_cache_quant_algo: str | None = None
    quant_details: QuantDetails = QuantDetails()

    @property
    def rotary_dim(self) -> int:
        """Number of dimensions of each head that rotate."""
        return int(self.head_size * self.rotary_pct)

    @property
    def world_size(self) -> int:
        """Number of ranks, and of weight files."""
        return self.tp_size * self.pp_size

    def to_json(self) -> dict[str, object]:
        """The content of config.json."""
        return {
            **self._common_json(),
            **(self._llama_json() if self.chatglm is None else self._chatglm_json(self.chatglm)),
            "rotary_base": self.rotary_base,
            "rotary_scaling": None if self.rotary_scaling is None else self.rotary_scaling.to_json(),
            # A key of later lines; older ones would warn, so it is written only where it says something.
            **({"tie_word_embeddings": True} if self.tied_embeddings else {}),
        }

    def _common_json(self) -> dict[str, object]:
        return {
            "architecture": self.architecture,
            "dtype": self.dtype,
            "logits_dtype": "float32",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_size": self.head_size,
            "intermediate_size": self.intermediate_size,
            "hidden_act": self.hidden_act,
            "norm_epsilon": self.norm_epsilon,
            "position_embedding_type": self.position_embedding_type,
            "max_position_embeddings": self.max_position_embeddings,
            "use_parallel_embedding": self.use_parallel_embedding,
            "embedding_sharding_dim": self.embedding_sharding_dim,
            "share_embedding_table": False,
            "qk_layernorm": False,
            "mapping": {"world_size": self.world_size, "tp_size": self.tp_size, "pp_size": self.pp_size},
            "quantization": {
                "quant_algo": self.quant_algo,
                "kv_cache_quant_algo": self.kv_cache_quant_algo,
                **self.quant_details.to_json(),
            },
        }

    def _llama_json(self) -> dict[str, object]:
        return {
            "rotary_embedding_dim": self.rotary_dim,
            "attn_bias": self.attn_bias,
            "mlp_bias": self.mlp_bias,
            "residual_mlp": False,
            "disable_weight_only_quant_plugin": False,
            "remove_duplicated_kv_heads": False,
            "fc_after_embed": False,
            "use_input_layernorm_in_first_layer": True,
            "use_last_layernorm": True,
            "layer_idx_offset": 0,
        }

    def _chatglm_json(self, chatglm: ChatGlmFields) -> dict[str, object]:
        return {
            # The whole head, as TensorRT-LLM itself writes for ChatGLM: the size that rotates follows from rotary_pct.
            "rotary_embedding_dim": self.head_size,
            "rotary_pct": self.rotary_pct,
            "chatglm_version": chatglm.chatglm_version,
            "add_bias_linear": chatglm.add_bias_linear,
            "add_qkv_bias": chatglm.add_qkv_bias,
            "rmsnorm": chatglm.rmsnorm,
            "apply_query_key_layer_scaling": False,
            "apply_residual_connection_post_layernorm": chatglm.apply_residual_connection_post_layernorm,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object], path: Path = Path(CONFIG_NAME)) -> TrtllmConfig:
        """Read the content of a config.json; unknown keys are ignored.

        Args:
            values: The JSON object.
            path: File that it came from, for errors.

        Raises:
            CorruptFile: A key is missing or has a wrong type.
            CheckpointError: The dtype is none that is supported.
        """
        fields = JsonFields(values, path)
        dtype = fields.text("dtype")
        if dtype not in FLOAT_TYPES:
            raise CheckpointError(f"{path}: dtype is {dtype!r}; expected one of {', '.join(FLOAT_TYPES)}")
        heads, hidden = fields.integer("num_attention_heads"), fields.integer("hidden_size")
        mapping = fields.nested("mapping") or JsonFields({}, path)
        quantization = fields.nested("quantization") or JsonFields({}, path)
        chatglm = _read_chatglm(fields) if "chatglm_version" in fields else None
        rotary_base, rotary_scaling = _read_rotary(fields, chatglm)
        return cls(
            architecture=fields.text("architecture"),
            dtype=dtype,
            vocab_size=fields.integer("vocab_size"),
            hidden_size=hidden,
            num_hidden_layers=fields.integer("num_hidden_layers"),
            num_attention_heads=heads,
            num_key_value_heads=fields.integer("num_key_value_heads", heads),
            head_size=fields.integer("head_size", hidden // heads),
            intermediate_size=fields.integer("intermediate_size", 4 * hidden),
            hidden_act=fields.text("hidden_act"),
            norm_epsilon=fields.number("norm_epsilon", 1e-5),
            position_embedding_type=fields.text("position_embedding_type"),
            max_position_embeddings=fields.integer("max_position_embeddings"),
            rotary_base=rotary_base,
            rotary_pct=fields.number("rotary_pct", 0.5 if chatglm else 1.0),
            rotary_scaling=rotary_scaling,
            attn_bias=chatglm.add_qkv_bias if chatglm else fields.flag("attn_bias", default=False),
            mlp_bias=chatglm.add_bias_linear if chatglm else fields.flag("mlp_bias", default=False),
            tied_embeddings=fields.flag("tie_word_embeddings", default=False),
            chatglm=chatglm,
            tp_size=mapping.integer("tp_size", 1),
            pp_size=mapping.integer("pp_size", 1),
            use_parallel_embedding=fields.flag("use_parallel_embedding", default=False),
            embedding_sharding_dim=fields.integer("embedding_sharding_dim", 0, least=0, most=1),
            quant_algo=_optional_text(quantization, "quant_algo"),
            kv_cache_quant_algo=_optional_text(quantization, "kv_cache_quant_algo"),
            quant_details=QuantDetails.from_json(quantization),
        )

    @classmethod
    def read(cls, folder: Path) -> TrtllmConfig:
        """The configuration of the checkpoint in a folder.

        Raises:
            CheckpointNotFound: There is no config.json.
            CorruptFile: It cannot be read.
        """
        path = folder / CONFIG_NAME
        return cls.from_json(read_json_object(path), path)


def _read_rotary(fields: JsonFields, chatglm: ChatGlmFields | None) -> tuple[float, RotaryScaling | None]:
    """Base and scaling; ChatGLM before 0.12 has one ratio instead, whose meaning follows from its version."""
    if chatglm is not None and "rope_ratio" in fields:
        ratio = fields.number("rope_ratio")
        if chatglm.chatglm_version != "chatglm2":
            return CHATGLM_ROTARY_BASE * ratio, None
        return CHATGLM_ROTARY_BASE, RotaryScaling(LINEAR, ratio) if ratio != 1 else None
    scaling = fields.nested("rotary_scaling")
    return fields.number("rotary_base", 10000.0), (
        None if scaling is None else RotaryScaling.from_json(scaling, defaults=LLAMA3_DEFAULTS)
    )


def _read_chatglm(fields: JsonFields) -> ChatGlmFields:
    return ChatGlmFields(
        chatglm_version=fields.text("chatglm_version"),
        add_bias_linear=fields.flag("add_bias_linear", default=False),
        add_qkv_bias=fields.flag("add_qkv_bias", default=True),
        rmsnorm=fields.flag("rmsnorm", default=True),
        apply_residual_connection_post_layernorm=fields.flag("apply_residual_connection_post_layernorm", default=False),
    )


def _optional_text(fields: JsonFields, key: str) -> str | None:
    return fields.text(key) if key in fields else None
