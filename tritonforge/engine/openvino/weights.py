"""Weights of a checkpoint as nodes of an OpenVINO graph, at the precision that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as ops
from openvino.op import Constant

from tritonforge.engine.openvino.ops import i64
from tritonforge.engine.openvino.quantize import int4_group, pack_nibbles, to_int4, to_int8
from tritonforge.errors import ShapeMismatch
from tritonforge.formats.safetensors import Array, TensorFolder

Rows = NDArray[np.int64]


class Weights:
    """The tensors of one rank file, each turned into a node once.

    Constants share the memory of their arrays, which this object holds: it has to live until the graph is written.

    Args:
        tensors: The rank file.
        precision: ``float32``, ``float16`` (16-bit weights as they are: bfloat16 stays bfloat16, which is exact),
            ``int8`` or ``int4``. Norms and biases are float32 in every case.
    """

    def __init__(self, tensors: TensorFolder, *, precision: str) -> None:
        self._tensors = tensors
        self._precision = precision
        self._kept: list[object] = []
        self._nodes: dict[str, ov.Node] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def vector(self, name: str, size: int, *, rows: Rows | None = None) -> ov.Node:
        """A bias or gain of shape [size] as a float32 constant, its elements in the order `rows`."""
        values = self._read(name, (size,)).astype(np.float32)
        return self.constant(values if rows is None else values[rows])

    def matrix(
        self, name: str, shape: tuple[int, int], *, rows: Rows | None = None, keep_8_bits: bool = False
    ) -> ov.Node:
        """A weight [out, in] as a float32-typed node: a constant with what decompresses it.

        Args:
            name: Tensor name.
            shape: Expected shape.
            rows: Order of the rows, when it differs from the file's.
            keep_8_bits: Use int8 where int4 was asked for: the embedding and the output head, where 4 bits cost
                most of the quality and save least of the time.

        Raises:
            ShapeMismatch: The file's shape is another one.
            MissingWeight: The file has no such tensor.
        """
        if name not in self._nodes:
            values = self._read(name, shape)
            node = self._decompressed(values if rows is None else values[rows], keep_8_bits=keep_8_bits)
            node.set_friendly_name(name)
            self._nodes[name] = node
        return self._nodes[name]

    def constant(self, values: Array) -> ov.Node:
        """A constant that shares the array's memory."""
        values = np.ascontiguousarray(values)
        self._kept.append(values)
        return Constant(values, shared_memory=True)

    def _read(self, name: str, shape: Sequence[int]) -> Array:
        found = self._tensors.info(name)
        if found.shape != tuple(shape):
            raise ShapeMismatch(name, expected=shape, found=found.shape, file=found.file)
        return self._tensors.read(name)

    def _decompressed(self, values: Array, *, keep_8_bits: bool) -> ov.Node:
        if self._precision == "float32":
            return self.constant(values.astype(np.float32))
        if self._precision == "float16":
            return self._as_16_bits(values)
        weight = values.astype(np.float32)
        group = int4_group(weight.shape[1])
        if self._precision == "int4" and group is not None and not keep_8_bits:
            return self._as_int4(weight, group)
        return self._as_int8(weight)

    def _as_16_bits(self, values: Array) -> ov.Node:
        if values.dtype == ml_dtypes.bfloat16:
            return ops.convert(self._typed(values.view(np.uint16), values.shape, ov.Type.bf16), "f32")
        return ops.convert(self._typed(values.astype(np.float16, copy=False), values.shape, ov.Type.f16), "f32")

    def _as_int8(self, weight: NDArray[np.float32]) -> ov.Node:
        quantised = to_int8(weight)
        values = ops.convert(self.constant(quantised.values), "f16")
        return ops.convert(ops.multiply(values, self.constant(quantised.scales)), "f32")

    def _as_int4(self, weight: NDArray[np.float32], group: int) -> ov.Node:
        quantised = to_int4(weight, group)
        values = ops.convert(self._typed(pack_nibbles(quantised.values), quantised.values.shape, ov.Type.u4), "f16")
        zeros = ops.convert(self._typed(pack_nibbles(quantised.zeros), quantised.zeros.shape, ov.Type.u4), "f16")
        grouped = ops.multiply(ops.subtract(values, zeros), self.constant(quantised.scales))
        return ops.convert(ops.reshape(grouped, i64(list(weight.shape)), special_zero=False), "f32")

    def _typed(self, values: Array, shape: Sequence[int], kind: ov.Type) -> ov.Node:
        """A constant over the raw memory of `values`, which may be read-only or of a type that numpy does not have."""
        values = np.ascontiguousarray(values)
        tensor = ov.Tensor(values, list(shape), kind)
        self._kept.extend((values, tensor))
        return Constant(tensor, shared_memory=True)
