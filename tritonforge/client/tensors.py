"""NumPy arrays to KServe v2 tensors and back: datatype names, raw bytes, JSON data. Pure.

A raw tensor is its elements in C order, little endian. BYTES elements are each preceded by their length, 4 bytes
unsigned little endian (binary tensor data extension of the KServe v2 protocol).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tritonforge.client.types import Tensor
from tritonforge.errors import ClientError

BYTES = "BYTES"
DTYPES: dict[str, np.dtype[np.generic]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    BYTES: np.dtype(np.object_),
}
DATATYPES = {dtype: name for name, dtype in DTYPES.items()}
WIRE_DTYPES = {name: dtype.newbyteorder("<") for name, dtype in DTYPES.items()}
LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class WireTensor:
    """A tensor as it travels.

    Args:
        name: Its name.
        datatype: KServe datatype.
        shape: Its shape.
        raw: Its elements.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    raw: bytes


def to_wire(name: str, array: Tensor) -> WireTensor:
    """The wire form of an array.

    Raises:
        ClientError: Its dtype has no KServe datatype, or an element of a text array is neither str nor bytes.
    """
    array = np.asarray(array)
    if array.dtype.kind in "OSU":
        return WireTensor(name, BYTES, array.shape, _frame(name, array.reshape(-1).tolist()))
    dtype = array.dtype.newbyteorder("<")
    datatype = DATATYPES.get(np.dtype(dtype.type))
    if datatype is None:
        raise ClientError(
            f"input {name!r} is an array of {array.dtype}, which has no tensor datatype",
            hint=f"convert it to one of: {', '.join(DTYPES)}",
        )
    return WireTensor(name, datatype, array.shape, array.astype(dtype, copy=False).tobytes())


def from_wire(tensor: WireTensor) -> Tensor:
    """The array of a raw tensor: a read-only view of its bytes, or bytes objects for BYTES.

    Raises:
        ClientError: The datatype is unknown, or the bytes do not fit the shape.
    """
    dtype = _dtype(tensor.name, tensor.datatype)
    count = math.prod(tensor.shape)
    if tensor.datatype == BYTES:
        return _objects(tensor.name, _unframe(tensor.name, tensor.raw), tensor.shape)
    expected_bytes = count * dtype.itemsize
    if len(tensor.raw) != expected_bytes:
        raise ClientError(
            f"output {tensor.name!r} has {len(tensor.raw)} bytes, "
            f"expected {expected_bytes} for {tensor.datatype} {list(tensor.shape)}"
        )
    return np.frombuffer(tensor.raw, WIRE_DTYPES[tensor.datatype]).reshape(tensor.shape)


def plain_values(name: str, datatype: str, raw: bytes) -> list[object]:
    """The elements of a raw tensor as plain Python values, without its shape.

    A streamed answer is many small tensors, for which this takes a fraction of the time of making arrays.

    Raises:
        ClientError: The datatype is unknown, or the bytes are not a whole number of elements.
    """
    if datatype == BYTES:
        return list(_unframe(name, raw))
    dtype = WIRE_DTYPES[datatype] if datatype in WIRE_DTYPES else _dtype(name, datatype)
    if len(raw) % dtype.itemsize:
        raise ClientError(f"output {name!r} has {len(raw)} bytes, which is not a whole number of {datatype} elements")
    values: list[object] = np.frombuffer(raw, dtype).tolist()
    return values


def from_values(name: str, datatype: str, shape: Sequence[int], values: Sequence[object]) -> Tensor:
    """The array of a tensor whose elements came one by one (JSON data, typed protobuf contents).

    Raises:
        ClientError: The datatype is unknown, or the elements do not fit the shape or the datatype.
    """
    dtype = _dtype(name, datatype)
    try:
        if datatype == BYTES:
            encoded = [value.encode() if isinstance(value, str) else value for value in _flat(values)]
            return _objects(name, encoded, tuple(shape))
        return np.array(values, dtype).reshape(tuple(shape))
    except (TypeError, ValueError, OverflowError) as error:
        raise ClientError(f"output {name!r} is not {datatype} {list(shape)}: {error}") from error


def _frame(name: str, values: Iterable[object]) -> bytes:
    parts = []
    for value in values:
        if isinstance(value, str):
            value = value.encode()
        if not isinstance(value, bytes):
            raise ClientError(
                f"input {name!r} holds a {type(value).__name__}; expected str or bytes in an array of objects",
                hint="give numbers as an array with a numeric dtype",
            )
        parts += [LENGTH.pack(len(value)), value]
    return b"".join(parts)


def _unframe(name: str, raw: bytes) -> list[bytes]:
    values = []
    position = 0
    while position < len(raw):
        start = position + LENGTH.size
        if start > len(raw):
            raise ClientError(f"output {name!r} ends in the middle of a length")
        position = start + int(LENGTH.unpack_from(raw, position)[0])
        if position > len(raw):
            raise ClientError(f"output {name!r} ends in the middle of an element")
        values.append(raw[start:position])
    return values


def _objects(name: str, values: Sequence[object], shape: tuple[int, ...]) -> Tensor:
    if len(values) != math.prod(shape):
        raise ClientError(f"output {name!r} has {len(values)} elements, expected {math.prod(shape)} for {list(shape)}")
    array = np.empty(len(values), np.object_)
    array[:] = values
    return array.reshape(shape)


def _flat(values: Sequence[object]) -> list[object]:
    flat: list[object] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            flat += _flat(value)
        else:
            flat.append(value)
    return flat


def _dtype(name: str, datatype: str) -> np.dtype[np.generic]:
    dtype = DTYPES.get(datatype)
    if dtype is None:
        raise ClientError(f"output {name!r} has the unknown datatype {datatype!r}")
    return dtype
