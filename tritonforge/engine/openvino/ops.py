"""Small constants and slices of an OpenVINO graph, so that the layers read like their formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import openvino as ov
from openvino import opset13 as ops

Node: TypeAlias = "ov.Node | ov.Output"
END = 2**63 - 1  # "to the end" of an axis


def i64(value: int | Sequence[int]) -> ov.Node:
    """An int64 constant: axes, shapes, bounds."""
    return ops.constant(np.array(value, dtype=np.int64))


def f32(value: float) -> ov.Node:
    """A float32 scalar constant."""
    return ops.constant(np.array(value, dtype=np.float32))


def take(x: Node, start: int, stop: int, *, axis: int) -> ov.Node:
    """`x[start:stop]` along one axis; `stop` may be END."""
    return ops.slice(x, i64([start]), i64([stop]), i64([1]), i64([axis]))


def split(x: Node, sizes: Sequence[int]) -> list[ov.Output]:
    """Cut the last axis into parts of the given sizes."""
    return list(ops.variadic_split(x, i64(-1), i64(list(sizes))).outputs())


def dimension(x: Node, axis: int) -> ov.Node:
    """The size of one axis as an int64 of shape [1]."""
    return ops.gather(ops.shape_of(x, "i64"), i64([axis]), i64(0))


def rms_norm(x: Node, gain: Node, epsilon: float) -> ov.Node:
    """`x / sqrt(mean(x²) + epsilon) * gain` over the last axis, in the form that the plugin fuses into one RMS node."""
    mean_square = ops.reduce_mean(ops.power(x, f32(2.0)), i64([-1]), keep_dims=True)
    inverse = ops.divide(f32(1.0), ops.sqrt(ops.add(mean_square, f32(epsilon))))
    return ops.multiply(ops.multiply(x, inverse), gain)
