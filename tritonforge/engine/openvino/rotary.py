"""Rotary position embedding: the angles, and the two forms in which a graph can apply them.

Symbols: B batch, S new tokens, H heads, D head size, R rotary size (R ≤ D: the first R values of a head are rotated).
Both forms rotate pairs (i, i + R/2). Checkpoints that rotate neighbours (2i, 2i + 1) instead are brought into this
form by reordering the rows of their query and key projections once, at build time (`half_split_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as ops

from tritonforge.engine.openvino.ops import END, Node, f32, i64, take
from tritonforge.engine.openvino.weights import Weights
from tritonforge.formats.trtllm import TrtllmConfig


@dataclass(frozen=True, slots=True)
class Rotary:
    """How queries and keys are rotated in one graph.

    Args:
        size: R.
        cos: float32 [B, 1, S, R].
        sin: float32 [B, 1, S, R].
        quarter_turn: float32 [R, R], x @ quarter_turn = concat(-x[R/2:], x[:R/2]), for the unfused form; None for the
            form that the plugin fuses.
    """

    size: int
    cos: ov.Node
    sin: ov.Node
    quarter_turn: ov.Node | None

    def rotate(self, x: Node, head_size: int) -> ov.Node:
        """Rotate the first R values of each head of `x` [B, H, S, D]."""
        if self.size == head_size:
            return self._rotate_whole(x)
        rotated = self._rotate_whole(take(x, 0, self.size, axis=3))
        return ops.concat([rotated, take(x, self.size, END, axis=3)], -1)

    def _rotate_whole(self, x: Node) -> ov.Node:
        if self.quarter_turn is not None:
            turned = ops.matmul(x, self.quarter_turn, transpose_a=False, transpose_b=False)
        else:
            half = self.size // 2
            turned = ops.concat([ops.multiply(take(x, half, END, axis=3), f32(-1.0)), take(x, 0, half, axis=3)], -1)
        return ops.add(ops.multiply(x, self.cos), ops.multiply(turned, self.sin))


def rotary(config: TrtllmConfig, weights: Weights, positions: Node, *, fused: bool) -> Rotary:
    """The rotation for the positions [B, S] of a graph's new tokens.

    Args:
        config: The checkpoint's configuration.
        weights: Holds the constants.
        positions: int64 [B, S].
        fused: Whether the plugin may fuse it into its RoPE node; otherwise the rotation is a matrix product, which
            no fusion pattern matches.
    """
    frequencies = weights.constant(inverse_frequencies(config).reshape(1, -1, 1))
    batch = ops.gather(ops.shape_of(positions, "i64"), i64([0]), i64(0))
    per_batch = ops.broadcast(
        frequencies, ops.concat([batch, i64([1]), i64([1])], 0), broadcast_spec="BIDIRECTIONAL"
    )  # [B, R/2, 1]
    angles = ops.matmul(
        per_batch, ops.convert(ops.unsqueeze(positions, i64(1)), "f32"), transpose_a=False, transpose_b=False
    )
    by_token = ops.transpose(angles, i64([0, 2, 1]))  # [B, S, R/2]
    both_halves = ops.concat([by_token, by_token], -1)
    size = config.rotary_dim
    return Rotary(
        size=size,
        cos=ops.unsqueeze(ops.cos(both_halves), i64(1)),
        sin=ops.unsqueeze(ops.sin(both_halves), i64(1)),
        quarter_turn=None if fused else weights.constant(_quarter_turn(size)),
    )


def inverse_frequencies(config: TrtllmConfig) -> NDArray[np.float32]:
    """Angle per position of each rotated pair, float32 [R/2], scaled as the checkpoint asks. Pure."""
    size = config.rotary_dim
    frequencies = 1.0 / config.rotary_base ** (np.arange(0, size, 2, dtype=np.float64) / size)
    scaling = config.rotary_scaling
    if scaling is None:
        return frequencies.astype(np.float32)
    return np.array([scaling.stretched(frequency) for frequency in frequencies.tolist()], np.float32)


def half_split_rows(heads: int, head_size: int, size: int) -> NDArray[np.int64]:
    """Order of projection rows that turns pairs of neighbours into pairs (i, i + R/2) inside each head. Pure.

    Queries and keys are reordered alike, so their products, and with them the model's answers, stay the same.
    """
    in_head = np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2), np.arange(size, head_size)])
    return np.concatenate([head * head_size + in_head for head in range(heads)])


def _quarter_turn(size: int) -> NDArray[np.float32]:
    matrix = np.zeros((size, size), np.float32)
    half = size // 2
    first = np.arange(half)
    matrix[first + half, first] = -1.0
    matrix[first, first + half] = 1.0
    return matrix
