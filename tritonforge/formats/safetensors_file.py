"""safetensors: a reader by header and memory map, and a writer that holds one tensor at a time.

The layout (https://github.com/huggingface/safetensors): 8 bytes little-endian header length, a JSON header that maps
tensor names to dtype, shape and byte range, then the data without holes. A tensor is touched only when it is read, so
a checkpoint of any size can be inspected and converted in little memory.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import ml_dtypes
import numpy as np

from tritonforge.errors import CheckpointError, CorruptFile, UnsupportedModel, UsageBug
from tritonforge.formats.input_file import open_input
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
_LENGTH_BYTES = 8
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


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """A tensor that is about to be written.

    Args:
        name: Its name.
        dtype: The format's spelling, a key of `DTYPES`.
        shape: Its dimensions.
        make: Gives the values, of exactly that dtype and shape, when their turn has come.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    make: Callable[[], Array]

    @property
    def size_bytes(self) -> int:
        """Size of its data."""
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize


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


def write_tensors(path: Path, tensors: Sequence[PlannedTensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors to a new file, in the given order, one in memory at a time.

    The space is taken before the first tensor is made, so a full disk shows at once. When anything fails, the file is
    removed.

    Args:
        path: The file; must not exist.
        tensors: What to write; names must differ.
        metadata: Free strings for the header.

    Raises:
        CheckpointError: The file cannot be written, for example because the disk is full.
        UsageBug: Two names are equal, or a tensor was made with another dtype or shape than planned.
    """
    header = _header_bytes(tensors, metadata)
    total_bytes = len(header) + sum(tensor.size_bytes for tensor in tensors)
    try:
        with path.open("xb") as stream:
            try:
                os.posix_fallocate(stream.fileno(), 0, total_bytes)
                stream.write(header)
                for tensor in tensors:
                    stream.write(_bytes_of(tensor).data)
                stream.flush()
                os.fsync(stream.fileno())
            except BaseException:
                path.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot write {total_bytes:,} bytes: {error.strerror}",
            hint="free some space, or choose an output folder on another disk",
        ) from error


def _parse_header(stream: BinaryIO, file: Path, size_bytes: int) -> tuple[dict[str, object], int]:
    """The header as JSON, and the offset of the data."""
    if size_bytes < _LENGTH_BYTES:
        raise CorruptFile(file, f"has {size_bytes} bytes: too short to be a safetensors file")
    length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
    if length > _MAX_HEADER_BYTES:
        raise CorruptFile(file, f"header length {length:,} is above the format's limit: not a safetensors file")
    if length > size_bytes - _LENGTH_BYTES:
        raise CorruptFile(file, f"is truncated: the header has {length:,} bytes, the file {size_bytes:,}")
    return parse_json_object(stream.read(length), file, what="the header"), _LENGTH_BYTES + length


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


def _header_bytes(tensors: Sequence[PlannedTensor], metadata: Mapping[str, str] | None) -> bytes:
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    position = 0
    for tensor in tensors:
        if tensor.name in header:
            raise UsageBug(f"tensor {tensor.name!r} is planned twice")
        end = position + tensor.size_bytes
        header[tensor.name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the data starts at a multiple of 8, as the reference implementation writes it
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def _bytes_of(tensor: PlannedTensor) -> Array:
    values = tensor.make()
    if values.dtype != DTYPES[tensor.dtype] or values.shape != tensor.shape:
        made = f"{values.dtype} {list(values.shape)}"
        raise UsageBug(f"{tensor.name} was planned as {tensor.dtype} {list(tensor.shape)}, but made as {made}")
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
