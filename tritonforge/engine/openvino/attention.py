"""Causal attention over a key/value cache that the graph keeps as state.

Symbols: B batch, S new tokens, T all tokens (past and new), H query heads, K key/value heads, D head size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import openvino as ov
from openvino import opset6, opset8
from openvino import opset13 as ops
from openvino.op.util import Variable, VariableInfo

from tritonforge.engine.openvino.ops import Node, dimension, f32, i64
from tritonforge.formats.trtllm import TrtllmConfig

MASKED = -65504.0  # the lowest float16: low enough to vanish in the softmax at any precision


@dataclass(frozen=True, slots=True)
class Attention:
    """What all attention layers of one graph share.

    Args:
        config: Head counts and size.
        batch: int64 [1] with B.
        mask: float32 [B, 1, S, T], 0 where a token may look and MASKED elsewhere.
        beam_idx: int32 [B], which row of the cache each row of the batch continues.
        fused: Use the attention operation, which the continuous-batching pipeline turns into paged attention;
            otherwise the formula is written out so that nothing fuses it again.
        cache_writes: Collects the cache updates, which the graph must list as its side effects.
    """

    config: TrtllmConfig
    batch: ov.Node
    mask: ov.Node
    beam_idx: ov.Node
    fused: bool
    cache_writes: list[ov.Node] = field(default_factory=list)

    def attend(self, layer: int, query: Node, key: Node, value: Node) -> ov.Node:
        """Attention of one layer.

        Args:
            layer: Its number, which names its cache.
            query: float32 [B, H, S, D].
            key: float32 [B, K, S, D], the new tokens only.
            value: float32 [B, K, S, D], the new tokens only.

        Returns:
            float32 [B, S, H · D].
        """
        # The names are the ones that exported Hugging Face models carry; the pipeline reads them.
        keys = self._repeat(self._cached(f"past_key_values.{layer}.keypresent.{layer}.key", key))
        values = self._repeat(self._cached(f"past_key_values.{layer}.valuepresent.{layer}.value", value))
        if self.fused:
            mixed = ops.scaled_dot_product_attention(query, keys, values, self.mask, causal=False)
        else:
            mixed = self._written_out(query, keys, values)
        by_token = ops.transpose(mixed, i64([0, 2, 1, 3]))
        width = self.config.num_attention_heads * self.config.head_size
        return ops.reshape(by_token, i64([0, 0, width]), special_zero=True)

    def _written_out(self, query: Node, keys: Node, values: Node) -> ov.Node:
        """Softmax as exp and sum, after subtracting the maximum: the plugin would fuse a Softmax node again."""
        scores = ops.matmul(query, keys, transpose_a=False, transpose_b=True)
        scores = ops.add(ops.multiply(scores, f32(1.0 / math.sqrt(self.config.head_size))), self.mask)
        weights = ops.exp(ops.subtract(scores, ops.reduce_max(scores, i64([-1]), keep_dims=True)))
        weighted = ops.matmul(weights, values, transpose_a=False, transpose_b=False)
        return ops.divide(weighted, ops.reduce_sum(weights, i64([-1]), keep_dims=True))

    def _cached(self, name: str, new: Node) -> ov.Node:
        """Past and new tokens of one cache, [B, K, T, D], which become its new content."""
        heads, size = self.config.num_key_value_heads, self.config.head_size
        state = VariableInfo()
        state.data_shape = ov.PartialShape([-1, heads, -1, size])
        state.data_type = ov.Type.f32
        state.variable_id = name
        variable = Variable(state)
        empty = ops.broadcast(f32(0.0), ops.concat([self.batch, i64([heads]), i64([0]), i64([size])], 0))
        past = opset8.gather(opset6.read_value(empty, variable), self.beam_idx, i64(0))
        whole = ops.concat([past, new], 2)
        self.cache_writes.append(opset6.assign(whole, variable))
        return whole

    def _repeat(self, x: Node) -> ov.Node:
        """[B, K, T, D] → [B, H, T, D]: every key/value head serves H / K neighbouring query heads."""
        heads, kv_heads, size = (
            self.config.num_attention_heads,
            self.config.num_key_value_heads,
            self.config.head_size,
        )
        if heads == kv_heads:
            return x
        copies = ops.concat([self.batch, i64([kv_heads]), i64([heads // kv_heads]), i64([1]), i64([size])], 0)
        repeated = ops.broadcast(ops.unsqueeze(x, i64(2)), copies, broadcast_spec="BIDIRECTIONAL")
        return ops.reshape(repeated, i64([0, heads, -1, size]), special_zero=True)


def causal_mask(input_ids: Node, attention_mask: Node) -> ov.Node:
    """The mask for new tokens [B, S] behind a cache, from the 0/1 mask over all tokens [B, T]."""
    total = ops.squeeze(dimension(attention_mask, 1), i64(0))
    past = ops.subtract(total, ops.squeeze(dimension(input_ids, 1), i64(0)))
    key_positions = ops.unsqueeze(ops.range(i64(0), total, i64(1), "i64"), i64([0, 1, 2]))  # [1, 1, 1, T]
    query_positions = ops.unsqueeze(ops.range(past, total, i64(1), "i64"), i64([0, 1, 3]))  # [1, 1, S, 1]
    earlier = ops.less_equal(key_positions, query_positions)
    real = ops.not_equal(ops.unsqueeze(attention_mask, i64([1, 2])), i64(0))  # [B, 1, 1, T]
    return ops.select(ops.logical_and(earlier, real), f32(0.0), f32(MASKED))
