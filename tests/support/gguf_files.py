"""Small GGUF files made from Hugging Face checkpoints, as llama.cpp's converter makes them.

The `gguf` package writes the files, so our own reader meets a foreign writer. A `GgufSource` is plain data: a test
changes what it is about before it writes the file.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import sentencepiece
from safetensors.numpy import load_file

_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


@dataclass
class GgufSource:
    """What a GGUF file will hold.

    Args:
        fields: Metadata; whole numbers are written as uint32, floats as float32.
        tensors: float32 values by GGUF name.
        storage: How matrices are stored; vectors are always float32.
    """

    fields: dict[str, object]
    tensors: dict[str, np.ndarray]
    storage: str = "F32"

    def write(self, path: Path, *, big_endian: bool = False) -> Path:
        """Write the file."""
        order = gguf.GGUFEndian.BIG if big_endian else gguf.GGUFEndian.LITTLE
        writer = gguf.GGUFWriter(path, str(self.fields.get("general.architecture", "llama")), endianess=order)
        for key, value in self.fields.items():
            if key != "general.architecture":  # the writer adds it
                _add_field(writer, key, value)
        for name, values in self.tensors.items():
            kind = gguf.GGMLQuantizationType[self.storage if values.ndim > 1 else "F32"]
            writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path


def from_checkpoint(folder: Path, *, storage: str = "F32") -> GgufSource:
    """The content of a GGUF file of a Hugging Face Llama folder with one weight file."""
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    return GgufSource(_model_fields(config) | tokenizer_fields(folder), _tensors(config, weights), storage)


def tokenizer_fields(folder: Path) -> dict[str, object]:
    """The metadata of the tokenizer in a Hugging Face folder."""
    if (folder / "tokenizer.json").exists():
        fields = byte_level_fields((folder / "tokenizer.json").read_text(), splitting="gpt-2")
        config = json.loads((folder / "tokenizer_config.json").read_text())
        ids = {"bos": 1, "eos": 2, "padding": 2}
        fields["tokenizer.chat_template"] = config["chat_template"]
    else:
        fields = sentencepiece_fields((folder / "tokenizer.model").read_bytes())
        ids = {"bos": 1, "eos": 2, "unknown": 0}
    return fields | {f"tokenizer.ggml.{role}_token_id": token_id for role, token_id in ids.items()}


def byte_level_fields(tokenizer_json: str, *, splitting: str) -> dict[str, object]:
    """The metadata of a byte-level BPE tokenizer.json, without special ids."""
    values = json.loads(tokenizer_json)
    ids = values["model"]["vocab"] | {token["content"]: token["id"] for token in values["added_tokens"]}
    kinds = {token["content"]: 3 if token["special"] else 4 for token in values["added_tokens"]}
    tokens = sorted(ids, key=ids.__getitem__)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": splitting,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [kinds.get(token, 1) for token in tokens],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in values["model"]["merges"]],
    }


def sentencepiece_fields(model: bytes) -> dict[str, object]:
    """The metadata of a sentencepiece model, without special ids."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    ids = range(pieces.get_piece_size())
    kinds = [2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 6 if pieces.is_byte(i) else 1 for i in ids]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": [pieces.id_to_piece(i) for i in ids],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": [pieces.get_score(i) for i in ids],
    }


def gguf_name(name: str) -> str:
    """The GGUF name of a Hugging Face tensor."""
    stem, suffix = name.rsplit(".", 1)
    prefix = ""
    if stem.startswith("model.layers."):
        _, _, layer, stem = stem.split(".", 3)
        prefix = f"blk.{layer}."
    return f"{prefix}{_NAMES[stem]}.{suffix}"


def interleave(rows: np.ndarray, heads: int) -> np.ndarray:
    """Query or key rows in GGUF's order: row i and row i + h/2 of each head side by side."""
    per_head = len(rows) // heads
    order = [head * per_head + pair + half for head in range(heads) for pair in range(per_head // 2)
             for half in (0, per_head // 2)]  # fmt: skip
    return rows[order]


def _model_fields(config: dict) -> dict[str, object]:
    heads = config["num_attention_heads"]
    head_size = config.get("head_dim") or config["hidden_size"] // heads
    return {
        "general.architecture": "llama",
        "general.type": "model",
        "llama.block_count": config["num_hidden_layers"],
        "llama.context_length": config["max_position_embeddings"],
        "llama.embedding_length": config["hidden_size"],
        "llama.feed_forward_length": config["intermediate_size"],
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": config["num_key_value_heads"],
        "llama.attention.key_length": head_size,
        "llama.attention.value_length": head_size,
        "llama.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "llama.rope.freq_base": config["rope_theta"],
        "llama.rope.dimension_count": head_size,
        "llama.vocab_size": config["vocab_size"],
    }


def _tensors(config: dict, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    tensors = {}
    for name, values in weights.items():
        rows = values.astype(np.float32)
        if ".q_proj." in name:
            rows = interleave(rows, config["num_attention_heads"])
        elif ".k_proj." in name:
            rows = interleave(rows, config["num_key_value_heads"])
        tensors[gguf_name(name)] = rows
    return tensors


def _add_field(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    if isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_string(key, str(value))
