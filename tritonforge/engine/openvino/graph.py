"""The whole decoder as one OpenVINO graph: TensorRT-LLM checkpoint in, openvino_model.xml and .bin out.

Symbols: B batch, S new tokens, E hidden size, F intermediate size, H query heads, K key/value heads, D head size,
V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset8
from openvino import opset13 as ops
from openvino.op import Parameter, Result

from tritonforge.engine.openvino.attention import Attention, causal_mask
from tritonforge.engine.openvino.ops import Node, dimension, i64, rms_norm, split
from tritonforge.engine.openvino.rotary import Rotary, half_split_rows, rotary
from tritonforge.engine.openvino.weights import Rows, Weights
from tritonforge.engine.writing import naming
from tritonforge.formats.safetensors import TensorFolder
from tritonforge.formats.trtllm import TrtllmConfig

MODEL_FILE = "openvino_model.xml"


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """How the graph is built.

    Args:
        precision: Of the weights: ``float32``, ``float16``, ``int8`` or ``int4``.
        fused_attention: One attention operation per layer; False writes the formula out.
        fused_rotary: A rotary form that the plugin fuses; False one that it does not.
    """

    precision: str
    fused_attention: bool
    fused_rotary: bool


def write_graph(config: TrtllmConfig, tensors: TensorFolder, folder: Path, *, options: GraphOptions) -> None:
    """Build the graph and write openvino_model.xml and openvino_model.bin into an existing folder.

    Raises:
        MissingWeight: The rank file lacks a tensor that the configuration asks for.
        ShapeMismatch: A tensor has another shape than the configuration implies.
        BuildError: A file cannot be written.
    """
    weights = Weights(tensors, precision=options.precision)
    model = _decoder(config, weights, options)
    # Compression to float16 is for the caller to ask for; here every weight already has the type that it is to have.
    with naming(folder / MODEL_FILE, (OSError, RuntimeError)):  # OpenVINO reports a full disk as the latter
        ov.save_model(model, folder / MODEL_FILE, compress_to_fp16=False)


def _decoder(config: TrtllmConfig, weights: Weights, options: GraphOptions) -> ov.Model:
    input_ids = _input("input_ids", ov.Type.i64, [-1, -1])
    attention_mask = _input("attention_mask", ov.Type.i64, [-1, -1])
    position_ids = _input("position_ids", ov.Type.i64, [-1, -1])
    beam_idx = _input("beam_idx", ov.Type.i32, [-1])
    attention = Attention(
        config,
        batch=dimension(input_ids, 0),
        mask=causal_mask(input_ids, attention_mask),
        beam_idx=beam_idx,
        fused=options.fused_attention,
    )
    layers = _Layers(config, weights, attention, rotary(config, weights, position_ids, fused=options.fused_rotary))

    embedding = _vocabulary_matrix(config, weights, "transformer.vocab_embedding.weight")
    hidden: Node = opset8.gather(embedding, ops.convert(input_ids, "i32"), i64(0))  # [B, S, E]
    for number in range(config.num_hidden_layers):
        hidden = layers.apply(number, hidden)
    normed = rms_norm(hidden, weights.vector("transformer.ln_f.weight", config.hidden_size), config.norm_epsilon)
    head = embedding if config.tied_embeddings else _vocabulary_matrix(config, weights, "lm_head.weight")
    # The product must be the direct source of the result: the pipeline looks for it there, to compute the logits of
    # the last token of each sequence only.
    logits = Result(ops.matmul(normed, head, transpose_a=False, transpose_b=True).output(0))
    logits.output(0).set_names({"logits"})
    return ov.Model([logits], attention.cache_writes, [input_ids, attention_mask, position_ids, beam_idx], "decoder")


@dataclass(frozen=True, slots=True)
class _Layers:
    """The transformer layers of one graph."""

    config: TrtllmConfig
    weights: Weights
    attention: Attention
    rotary: Rotary

    def apply(self, number: int, hidden: Node) -> ov.Node:
        """One layer: [B, S, E] → [B, S, E]."""
        prefix = f"transformer.layers.{number}"
        normed = self._norm(hidden, f"{prefix}.input_layernorm")
        hidden = ops.add(hidden, self._attention(number, prefix, normed))
        normed = self._norm(hidden, f"{prefix}.post_layernorm")
        return ops.add(hidden, self._mlp(prefix, normed))

    def _norm(self, hidden: Node, name: str) -> ov.Node:
        gain = self.weights.vector(f"{name}.weight", self.config.hidden_size)
        return rms_norm(hidden, gain, self.config.norm_epsilon)

    def _attention(self, number: int, prefix: str, hidden: Node) -> ov.Node:
        config = self.config
        heads, kv_heads, size = config.num_attention_heads, config.num_key_value_heads, config.head_size
        rows = (heads + 2 * kv_heads) * size
        fused = self._linear(hidden, f"{prefix}.attention.qkv", config.hidden_size, rows, rows=_qkv_rows(config))
        query, key, value = split(fused, [heads * size, kv_heads * size, kv_heads * size])
        query = self.rotary.rotate(self._by_head(query, heads), size)
        key = self.rotary.rotate(self._by_head(key, kv_heads), size)
        mixed = self.attention.attend(number, query, key, self._by_head(value, kv_heads))
        return self._linear(mixed, f"{prefix}.attention.dense", heads * size, config.hidden_size)

    def _by_head(self, x: Node, heads: int) -> ov.Node:
        """[B, S, heads · D] → [B, heads, S, D]."""
        apart = ops.reshape(x, i64([0, 0, heads, self.config.head_size]), special_zero=True)
        return ops.transpose(apart, i64([0, 2, 1, 3]))

    def _mlp(self, prefix: str, hidden: Node) -> ov.Node:
        width, inner = self.config.hidden_size, self.config.intermediate_size
        if self.config.hidden_act == "swiglu":  # ChatGLM keeps both projections in one matrix, [up ; gate]
            up, gate = split(self._linear(hidden, f"{prefix}.mlp.fc", width, 2 * inner), [inner, inner])
        else:  # Llama: `fc` is the activated gate projection, `gate` the up projection
            gate = self._linear(hidden, f"{prefix}.mlp.fc", width, inner)
            up = self._linear(hidden, f"{prefix}.mlp.gate", width, inner)
        return self._linear(ops.multiply(ops.swish(gate), up), f"{prefix}.mlp.proj", inner, width)

    def _linear(self, x: Node, name: str, inputs: int, outputs: int, *, rows: Rows | None = None) -> ov.Node:
        """`x @ weightᵀ`, plus the bias when the checkpoint has one."""
        weight = self.weights.matrix(f"{name}.weight", (outputs, inputs), rows=rows)
        product = ops.matmul(x, weight, transpose_a=False, transpose_b=True)
        if f"{name}.bias" not in self.weights:
            return product
        return ops.add(product, self.weights.vector(f"{name}.bias", outputs, rows=rows))


def _vocabulary_matrix(config: TrtllmConfig, weights: Weights, name: str) -> ov.Node:
    return weights.matrix(name, (config.vocab_size, config.hidden_size), keep_8_bits=True)


def _qkv_rows(config: TrtllmConfig) -> Rows | None:
    """Order of the fused projection's rows: queries and keys brought to the half-split rotary, values as they are."""
    if config.position_embedding_type != "rope_gptj":
        return None
    turned = half_split_rows(
        config.num_attention_heads + config.num_key_value_heads, config.head_size, config.rotary_dim
    )
    rows: Rows = np.arange(turned.size + config.num_key_value_heads * config.head_size)
    rows[: turned.size] = turned
    return rows


def _input(name: str, kind: ov.Type, shape: list[int]) -> ov.Node:
    parameter = Parameter(kind, ov.PartialShape(shape))
    parameter.set_friendly_name(name)
    parameter.output(0).set_names({name})
    return parameter
