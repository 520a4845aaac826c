"""safetensors, read: by header, then by memory map or in parts. `safetensors_writer` has the other direction.

The layout (https://github.com/huggingface/safetensors): 8 bytes little-endian header length, a JSON header that maps
tensor names to dtype, shape and byte range, then the data without holes. A tensor is touched only when it is read, so
a checkpoint of any size can be inspected and converted in little memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import ml_dtypes
import numpy as np

from tritonforge.errors import CorruptFile, UnsupportedModel
from tritonforge.formats.input_file import open_input, reading
from tritonforge.formats.json_fields import parse_json_object

Array = np.ndarray[Any, np.dtype[Any]]

# The format's spelling → numpy. The sub-byte types (F4, F6_*) and complex numbers have no use here.
DTYPES: Mapping[str, np.dtype[Any]] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U64": np.dtype(np.uint64),
    "U32": np.dtype(np.uint32),
    "U16": np.dtype(np.uint16),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}
LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100_000_000  # the limit of the reference implementation


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What a header says of one tensor.

    Args:
        name: Its name.
        dtype: The format's spelling, a key of `DTYPES`.
        shape: Its dimensions; empty for a scalar.
        file: The file that holds it.
        start: First byte in the file.
        end: One past its last byte.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path
    start: int
    end: int


def read_header(file: Path) -> dict[str, TensorInfo]:
    """The tensors of one file, by name; nothing but the header is read.

    Raises:
        CheckpointNotFound: There is no such file.
        CorruptFile: It is no regular file or truncated, its header is not what the format prescribes, or byte ranges
            overlap, leave holes or end outside the file.
        UnsupportedModel: A tensor has a dtype that is not in `DTYPES`.
    """
    with open_input(file) as stream:
        size_bytes = os.fstat(stream.fileno()).st_size
        header, data_start = _parse_header(stream, file, size_bytes)
    header.pop("__metadata__", None)
    tensors = {name: _parse_entry(name, entry, file, data_start) for name, entry in header.items()}
    _check_ranges(tensors, file, data_start, size_bytes)
    return tensors


def map_file(file: Path) -> Array:
    """The bytes of a file as a read-only memory map.

    Raises:
        CheckpointNotFound, CorruptFile: It cannot be read.
    """
    with open_input(file) as stream:
        # asarray drops the memmap subclass, whose slices are slow to make; the map lives on as the base of each view.
        return np.asarray(np.memmap(stream, dtype=np.uint8, mode="r"))


def view_tensor(mapped: Array, tensor: TensorInfo) -> Array:
    """One tensor of a mapped file: a read-only view, no copy."""
    return mapped[tensor.start : tensor.end].view(DTYPES[tensor.dtype]).reshape(tensor.shape)


def open_descriptor(file: Path) -> int:
    """A descriptor of a file for `read_exactly`; the caller closes it.

    Raises:
        CheckpointNotFound, CorruptFile: It cannot be opened.
    """
    with open_input(file) as stream:
        return os.dup(stream.fileno())


def read_exactly(descriptor: int, start: int, out: Array, file: Path) -> None:
    """Fill a contiguous array with the bytes from `start` on.

    Args:
        descriptor: An open file; its position is neither used nor moved.
        start: The first byte.
        out: Where they go.
        file: Its path, for errors.

    Raises:
        CorruptFile: It cannot be read, or ends before that.
    """
    view = out.reshape(-1).view(np.uint8).data
    while view:
        with reading(file):
            count = os.preadv(descriptor, [view], start)
        if not count:
            raise CorruptFile(file, f"has become shorter while it was read: byte {start:,} is missing")
        view, start = view[count:], start + count


def _parse_header(stream: BinaryIO, file: Path, size_bytes: int) -> tuple[dict[str, object], int]:
    """The header as JSON, and the offset of the data."""
    if size_bytes < LENGTH_BYTES:
        raise CorruptFile(file, f"has {size_bytes} bytes: too short to be a safetensors file")
    length = int.from_bytes(stream.read(LENGTH_BYTES), "little")
    if length > _MAX_HEADER_BYTES:
        raise CorruptFile(file, f"header length {length:,} is above the format's limit: not a safetensors file")
    if length > size_bytes - LENGTH_BYTES:
        raise CorruptFile(file, f"is truncated: the header has {length:,} bytes, the file {size_bytes:,}")
    return parse_json_object(stream.read(length), file, what="the header"), LENGTH_BYTES + length


def _parse_entry(name: str, entry: object, file: Path, data_start: int) -> TensorInfo:
    if not isinstance(entry, dict):
        raise CorruptFile(file, f"header entry {name!r} is not an object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not _are_sizes(shape):
        raise CorruptFile(file, f"tensor {name!r} has shape {shape!r}; expected a list of sizes")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise CorruptFile(file, f"tensor {name!r} has data_offsets {offsets!r}; expected [start, end]")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise UnsupportedModel(f"{file}: tensor {name!r}", [f"dtype {dtype!r} is not one of {', '.join(DTYPES)}"])
    expected_bytes = math.prod(shape) * DTYPES[dtype].itemsize
    if offsets[1] - offsets[0] != expected_bytes:
        found = f"tensor {name!r} ({dtype} {shape}) needs {expected_bytes:,} bytes"
        raise CorruptFile(file, f"{found}, its data_offsets {offsets} span {offsets[1] - offsets[0]:,}")
    start, end = (data_start + offset for offset in offsets)
    return TensorInfo(name, dtype, tuple(shape), file, start, end)


def _are_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _check_ranges(tensors: Mapping[str, TensorInfo], file: Path, data_start: int, size_bytes: int) -> None:
    """Byte ranges must follow each other without overlap or hole, up to the end of the file."""
    position, previous = data_start, "the header"
    for tensor in sorted(tensors.values(), key=lambda tensor: (tensor.start, tensor.end)):
        if tensor.start != position:
            relation = "overlaps" if tensor.start < position else "leaves a hole after"
            raise CorruptFile(file, f"tensor {tensor.name!r} {relation} {previous}")
        position, previous = tensor.end, f"tensor {tensor.name!r}"
    if position > size_bytes:
        raise CorruptFile(file, f"is truncated: {previous} ends at byte {position:,}, the file has {size_bytes:,}")
    if position < size_bytes:
        raise CorruptFile(file, f"has {size_bytes - position:,} bytes after its last tensor")
