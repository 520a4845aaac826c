"""Checkpoints in the shape of published Llama models, with weights that mean nothing, as large as one likes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tritonforge.formats.safetensors import DTYPES, Array, PlannedTensor, write_tensors

_RANDOM_VALUES = 1 << 22
_NAMES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """The sizes of a Llama model.

    Args:
        hidden: Width of the residual stream.
        heads: Query heads.
        kv_heads: Key and value heads.
        intermediate: Width of the MLP.
        vocab: Rows of the embedding.
    """

    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    vocab: int

    def tensors(self, layers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name and shape of every tensor."""
        kv_rows = self.hidden // self.heads * self.kv_heads
        yield "model.embed_tokens.weight", (self.vocab, self.hidden)
        for i in range(layers):
            layer = f"model.layers.{i}"
            for part, rows in (("q", self.hidden), ("k", kv_rows), ("v", kv_rows), ("o", self.hidden)):
                yield f"{layer}.self_attn.{part}_proj.weight", (rows, self.hidden)
            yield f"{layer}.mlp.gate_proj.weight", (self.intermediate, self.hidden)
            yield f"{layer}.mlp.up_proj.weight", (self.intermediate, self.hidden)
            yield f"{layer}.mlp.down_proj.weight", (self.hidden, self.intermediate)
            yield f"{layer}.input_layernorm.weight", (self.hidden,)
            yield f"{layer}.post_attention_layernorm.weight", (self.hidden,)
        yield "model.norm.weight", (self.hidden,)
        yield "lm_head.weight", (self.vocab, self.hidden)

    def size_bytes(self, *, layers: int, item_bytes: int = 2) -> int:
        """Size of all tensors."""
        return item_bytes * sum(math.prod(shape) for _, shape in self.tensors(layers))


LLAMA_2_7B = LlamaShape(hidden=4096, heads=32, kv_heads=32, intermediate=11008, vocab=32000)


def write_llama_shape(
    folder: Path, shape: LlamaShape, *, layers: int, dtype: str, seed: int = 0, sparse: bool = False
) -> None:
    """Write a LlamaForCausalLM folder whose weights are a function of the seed.

    Args:
        folder: The folder to make.
        shape: The sizes.
        layers: Number of layers.
        dtype: Spelling of safetensors, BF16, F16 or F32.
        seed: Where the weights come from.
        sparse: Make all weights zero instead, in a file that takes no room on the disk.
    """
    folder.mkdir(parents=True)
    _write_config(folder, shape, layers, dtype)
    if sparse:
        _write_zeros(folder / "model.safetensors", shape.tensors(layers), dtype)
        return
    values = (np.random.default_rng(seed).standard_normal(_RANDOM_VALUES) * 0.02).astype(DTYPES[dtype])
    planned = [
        PlannedTensor(name, dtype, of_tensor, partial(_weights, values, of_tensor, 977 * number))
        for number, (name, of_tensor) in enumerate(shape.tensors(layers))
    ]
    write_tensors(folder / "model.safetensors", planned, {"format": "pt"})


def _write_config(folder: Path, shape: LlamaShape, layers: int, dtype: str) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "vocab_size": shape.vocab,
        "tie_word_embeddings": False,
        "torch_dtype": _NAMES[dtype],
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def _write_zeros(file: Path, tensors: Iterable[tuple[str, tuple[int, ...]]], dtype: str) -> None:
    header: dict[str, object] = {}
    position = 0
    for name, shape in tensors:
        end = position + math.prod(shape) * DTYPES[dtype].itemsize
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [position, end]}
        position = end
    text = json.dumps(header).encode()
    with file.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        stream.truncate(8 + len(text) + position)


def _weights(values: Array, shape: tuple[int, ...], shift: int) -> Array:
    """The same random values for each tensor, beginning elsewhere, repeated as often as it takes."""
    return np.resize(np.roll(values, shift), shape)
