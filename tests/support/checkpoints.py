"""Small Hugging Face checkpoints with random weights, in the layouts that are published.

The safetensors library writes the files, so our own reader meets a foreign writer. Everything is a function of `seed`.
"""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from tests.support import tokenizer_files

DTYPES = {"F32": np.dtype(np.float32), "F16": np.dtype(np.float16), "BF16": np.dtype(ml_dtypes.bfloat16)}
TORCH_NAMES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
Weights = dict[str, np.ndarray]


def write_llama(
    folder: Path,
    *,
    hidden: int = 64,
    layers: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int | None = None,
    intermediate: int = 96,
    vocab: int | None = None,
    tied: bool = False,
    attention_bias: bool = False,
    mlp_bias: bool = False,
    rope_scaling: dict[str, object] | None = None,
    rope_theta: float = 10000.0,
    dtype: str = "F32",
    shards: int = 1,
    max_position: int = 512,
    newer_layout: bool = False,
    tokenizer: str | None = "chatml",
    architecture: str = "LlamaForCausalLM",
    seed: int = 0,
    **config: object,
) -> Path:
    """Write a LlamaForCausalLM folder.

    Args:
        vocab: Embedding rows; None takes the tokenizer's number of tokens (131 without one).
        newer_layout: Spell the configuration as transformers 5 does (``dtype``, ``rope_parameters``).
        tokenizer: ``chatml`` (tokenizer.json), ``sentencepiece`` (tokenizer.model) or None.
        config: Further keys of config.json; they replace the ones made here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    writers = {"chatml": tokenizer_files.write_chatml, "sentencepiece": tokenizer_files.write_sentencepiece}
    vocab = _vocab(vocab, writers[tokenizer](folder) if tokenizer else None)
    size = head_dim or hidden // heads
    draw = _Draw(seed, dtype)
    weights: Weights = {"model.embed_tokens.weight": draw.matrix(vocab, hidden), "model.norm.weight": draw.norm(hidden)}
    if not tied:
        weights["lm_head.weight"] = draw.matrix(vocab, hidden)
    for i in range(layers):
        layer = f"model.layers.{i}."
        rows = {"q": heads * size, "k": kv_heads * size, "v": kv_heads * size}
        for name, count in rows.items():
            draw.linear(weights, f"{layer}self_attn.{name}_proj", count, hidden, bias=attention_bias)
        draw.linear(weights, f"{layer}self_attn.o_proj", hidden, heads * size, bias=attention_bias)
        draw.linear(weights, f"{layer}mlp.gate_proj", intermediate, hidden, bias=mlp_bias)
        draw.linear(weights, f"{layer}mlp.up_proj", intermediate, hidden, bias=mlp_bias)
        draw.linear(weights, f"{layer}mlp.down_proj", hidden, intermediate, bias=mlp_bias)
        weights[f"{layer}input_layernorm.weight"] = draw.norm(hidden)
        weights[f"{layer}post_attention_layernorm.weight"] = draw.norm(hidden)
    values: dict[str, object] = {
        "architectures": [architecture],
        "model_type": "mistral" if architecture.startswith("Mistral") else "llama",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": max_position,
        "rms_norm_eps": 1e-5,
        "attention_bias": attention_bias,
        "mlp_bias": mlp_bias,
        "tie_word_embeddings": tied,
        "vocab_size": vocab,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **({"head_dim": head_dim} if head_dim else {}),
        **_rope(rope_theta, rope_scaling, newer_layout=newer_layout),
        **_dtype(dtype, newer_layout=newer_layout),
        **config,
    }
    return _write(folder, values, weights, shards)


def write_chatglm(
    folder: Path,
    *,
    version: str = "chatglm3",
    multi_query: bool = True,
    hidden: int = 64,
    layers: int = 2,
    heads: int = 4,
    groups: int = 2,
    kv_channels: int | None = None,
    intermediate: int = 96,
    vocab: int | None = None,
    rope_ratio: float = 1.0,
    add_qkv_bias: bool = True,
    add_bias_linear: bool = False,
    dtype: str = "F16",
    shards: int = 1,
    max_position: int = 512,
    tokenizer: bool = True,
    seed: int = 0,
    **config: object,
) -> Path:
    """Write a ChatGLM folder in its original naming.

    Args:
        version: ``chatglm2``, ``chatglm3`` or ``glm4``; decides the tokenizer and the facts in config.json.
        multi_query: Keys and values are shared by `groups`; otherwise every head has its own, and the rows of the
            fused projection are stored head by head.
        config: Further keys of config.json; they replace the ones made here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokens = tokenizer_files.write_chatglm(folder, version) if tokenizer else None
    vocab = _vocab(vocab, None if tokens is None else -(-tokens // 32) * 32)  # padded, as published ones are
    size = kv_channels or hidden // heads
    rows = (heads + 2 * (groups if multi_query else heads)) * size
    draw = _Draw(seed, dtype)
    weights: Weights = {
        "transformer.embedding.word_embeddings.weight": draw.matrix(vocab, hidden),
        "transformer.rotary_pos_emb.inv_freq": draw.inverse_frequencies(size // 2),
        "transformer.encoder.final_layernorm.weight": draw.norm(hidden),
        "transformer.output_layer.weight": draw.matrix(vocab, hidden),
    }
    for i in range(layers):
        layer = f"transformer.encoder.layers.{i}."
        qkv_bias = add_qkv_bias or add_bias_linear
        draw.linear(weights, f"{layer}self_attention.query_key_value", rows, hidden, bias=qkv_bias)
        draw.linear(weights, f"{layer}self_attention.dense", hidden, heads * size, bias=add_bias_linear)
        draw.linear(weights, f"{layer}mlp.dense_h_to_4h", 2 * intermediate, hidden, bias=add_bias_linear)
        draw.linear(weights, f"{layer}mlp.dense_4h_to_h", hidden, intermediate, bias=add_bias_linear)
        weights[f"{layer}input_layernorm.weight"] = draw.norm(hidden)
        weights[f"{layer}post_attention_layernorm.weight"] = draw.norm(hidden)
    values: dict[str, object] = {
        "model_type": "chatglm",
        "architectures": ["ChatGLMModel"],
        "add_bias_linear": add_bias_linear,
        "add_qkv_bias": add_qkv_bias,
        "apply_query_key_layer_scaling": True,
        "apply_residual_connection_post_layernorm": False,
        "ffn_hidden_size": intermediate,
        "hidden_size": hidden,
        "kv_channels": size,
        "layernorm_epsilon": 1.5625e-07 if version == "glm4" else 1e-05,
        "multi_query_attention": multi_query,
        "multi_query_group_num": groups,
        "num_attention_heads": heads,
        "num_layers": layers,
        "original_rope": True,
        "padded_vocab_size": vocab,
        "post_layer_norm": True,
        "rmsnorm": True,
        "seq_length": max_position,
        "use_cache": True,
        "torch_dtype": TORCH_NAMES[dtype],
        "tie_word_embeddings": False,
        **({"rope_ratio": rope_ratio} if rope_ratio != 1.0 else {}),
        **_chatglm_facts(version, tokens),
        **config,
    }
    return _write(folder, values, weights, shards)


def write_glm(
    folder: Path,
    *,
    hidden: int = 64,
    layers: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int | None = None,
    intermediate: int = 96,
    vocab: int | None = None,
    attention_bias: bool = True,
    tied: bool = False,
    partial_rotary_factor: float = 0.5,
    rope_theta: float = 10000.0,
    dtype: str = "F32",
    shards: int = 1,
    max_position: int = 512,
    newer_layout: bool = True,
    tokenizer: bool = True,
    seed: int = 0,
    **config: object,
) -> Path:
    """Write a GlmForCausalLM folder, the naming of transformers itself; arguments as in `write_llama`."""
    folder.mkdir(parents=True, exist_ok=True)
    vocab = _vocab(vocab, tokenizer_files.write_glm(folder) if tokenizer else None)
    size = head_dim or hidden // heads
    draw = _Draw(seed, dtype)
    weights: Weights = {"model.embed_tokens.weight": draw.matrix(vocab, hidden), "model.norm.weight": draw.norm(hidden)}
    if not tied:
        weights["lm_head.weight"] = draw.matrix(vocab, hidden)
    for i in range(layers):
        layer = f"model.layers.{i}."
        for name, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            draw.linear(weights, f"{layer}self_attn.{name}_proj", count * size, hidden, bias=attention_bias)
        draw.linear(weights, f"{layer}self_attn.o_proj", hidden, heads * size)
        draw.linear(weights, f"{layer}mlp.gate_up_proj", 2 * intermediate, hidden)
        draw.linear(weights, f"{layer}mlp.down_proj", hidden, intermediate)
        weights[f"{layer}input_layernorm.weight"] = draw.norm(hidden)
        weights[f"{layer}post_attention_layernorm.weight"] = draw.norm(hidden)
    partial: dict[str, object] = {"partial_rotary_factor": partial_rotary_factor}
    rope = _rope(rope_theta, partial if newer_layout else None, newer_layout=newer_layout)
    values: dict[str, object] = {
        "architectures": ["GlmForCausalLM"],
        "model_type": "glm",
        "attention_bias": attention_bias,
        "head_dim": size,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "max_position_embeddings": max_position,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads,
        "rms_norm_eps": 1.5625e-07,
        "tie_word_embeddings": tied,
        "vocab_size": vocab,
        "eos_token_id": [0, 7, 9],
        "pad_token_id": 0,
        **({} if newer_layout else partial),
        **rope,
        **_dtype(dtype, newer_layout=newer_layout),
        **config,
    }
    return _write(folder, values, weights, shards)


class _Draw:
    """Random weights of one dtype. Scales are such that logits differ clearly and float16 does not overflow."""

    def __init__(self, seed: int, dtype: str) -> None:
        self._random = np.random.default_rng(seed)
        self._dtype = DTYPES[dtype]

    def matrix(self, rows: int, columns: int) -> np.ndarray:
        return (self._random.standard_normal((rows, columns)) * 0.15).astype(self._dtype)

    def norm(self, size: int) -> np.ndarray:
        return (1 + 0.1 * self._random.standard_normal(size)).astype(self._dtype)

    def linear(self, weights: Weights, name: str, rows: int, columns: int, *, bias: bool = False) -> None:
        weights[f"{name}.weight"] = self.matrix(rows, columns)
        if bias:
            weights[f"{name}.bias"] = (0.2 * self._random.standard_normal(rows)).astype(self._dtype)

    def inverse_frequencies(self, dimensions: int) -> np.ndarray:
        return (10000.0 ** -(np.arange(0, dimensions, 2) / dimensions)).astype(self._dtype)


def _vocab(asked: int | None, tokens: int | None) -> int:
    if asked is not None and tokens is not None and asked < tokens:
        raise ValueError(f"vocab {asked} is smaller than the tokenizer's {tokens} tokens; pass tokenizer=None or False")
    return asked or tokens or 131


def _rope(theta: float, scaling: dict[str, object] | None, *, newer_layout: bool) -> dict[str, object]:
    if newer_layout:
        return {"rope_parameters": {"rope_type": "default", **(scaling or {}), "rope_theta": theta}}
    return {"rope_theta": theta, "rope_scaling": scaling}


def _dtype(dtype: str, *, newer_layout: bool) -> dict[str, object]:
    key, version = ("dtype", "5.24.0") if newer_layout else ("torch_dtype", "4.45.1")
    return {key: TORCH_NAMES[dtype], "transformers_version": version}


def _chatglm_facts(version: str, tokens: int | None) -> dict[str, object]:
    """The keys by which the published configurations of the versions differ."""
    model = "modeling_chatglm.ChatGLMForConditionalGeneration"
    maps = {"AutoConfig": "configuration_chatglm.ChatGLMConfig", "AutoModel": model, "AutoModelForSeq2SeqLM": model}
    if version == "chatglm2":
        return {"auto_map": maps, "transformers_version": "4.27.1", "eos_token_id": 2, "pad_token_id": 0}
    maps["AutoModelForCausalLM"] = model
    if version == "chatglm3":
        return {"auto_map": maps, "transformers_version": "4.30.2", "eos_token_id": 2, "pad_token_id": 0}
    end = (tokens or 131) - 14  # <|endoftext|>; <|user|> and <|observation|> are 7 and 9 ids later
    return {"auto_map": maps, "eos_token_id": [end, end + 7, end + 9], "pad_token_id": end, "classifier_dropout": None}


def _write(folder: Path, config: dict[str, object], weights: Weights, shards: int) -> Path:
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    if shards == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return folder
    names = sorted(weights)
    weight_map = {}
    for i in range(shards):
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        part = {name: weights[name] for name in names[i::shards]}
        save_file(part, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    total = sum(weight.nbytes for weight in weights.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    return folder
