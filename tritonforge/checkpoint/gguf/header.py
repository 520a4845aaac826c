"""The header of a GGUF file: its metadata and its table of tensors, with nothing said yet of what they mean. Pure.

The layout (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): magic, version, number of tensors, number of
metadata pairs; the pairs (key, type, value); the tensors (name, dimensions from the innermost out, storage type,
offset); then the data, aligned. All numbers are little-endian.

The `gguf` package has a reader too, but it makes numpy views of every single token and merge: 7 seconds for a
vocabulary of 49,152, where this takes a fraction of one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from tritonforge.errors import CorruptFile

Scalar = int | float | bool | str

MAGIC = b"GGUF"
_DEFAULT_ALIGNMENT = 32
_MAX_DIMENSIONS = 4
_STRING, _ARRAY = 8, 9
# Type number in the file → code of the struct module.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One row of the table of tensors.

    Args:
        name: Its name.
        shape: Its dimensions, rows first.
        type_number: How it is stored.
        start: First byte of its data in the file.
    """

    name: str
    shape: tuple[int, ...]
    type_number: int
    start: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What precedes the data.

    Args:
        fields: The metadata.
        tensors: The table of tensors, in the file's order.
    """

    fields: dict[str, Scalar | list[Scalar]]
    tensors: tuple[StoredTensor, ...]


def parse_header(path: Path, content: memoryview) -> GgufHeader:
    """The header of a file of GGUF version 2 or 3.

    Args:
        path: The file, for errors.
        content: Its bytes.

    Raises:
        CorruptFile: The file ends within the header, or the header is not what the format prescribes.
    """
    cursor = _Cursor(path, content)
    cursor.skip(len(MAGIC) + 4)
    tensor_count, field_count = cursor.integer("Q"), cursor.integer("Q")
    fields: dict[str, Scalar | list[Scalar]] = {}
    for _ in range(field_count):
        key = cursor.text()
        if key in fields:
            raise CorruptFile(path, f"its metadata have the key {key!r} twice")
        fields[key] = cursor.value(key)
    rows = [_tensor_row(cursor) for _ in range(tensor_count)]
    if len({row.name for row in rows}) != len(rows):
        raise CorruptFile(path, "it names a tensor twice")
    alignment = fields.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise CorruptFile(path, f"general.alignment is {alignment!r}; expected a power of two")
    data_start = -(-cursor.position // alignment) * alignment
    tensors = (StoredTensor(row.name, row.shape, row.type_number, data_start + row.start) for row in rows)
    return GgufHeader(fields, tuple(tensors))


def _tensor_row(cursor: _Cursor) -> StoredTensor:
    """One row as it is in the file: `start` counts from the beginning of the data."""
    name = cursor.text()
    dimensions = cursor.integer("I")
    if not 1 <= dimensions <= _MAX_DIMENSIONS:
        raise CorruptFile(cursor.path, f"tensor {name!r} has {dimensions} dimensions; expected 1 to {_MAX_DIMENSIONS}")
    shape = tuple(reversed([cursor.integer("Q") for _ in range(dimensions)]))
    return StoredTensor(name, shape, cursor.integer("I"), cursor.integer("Q"))


class _Cursor:
    """A position in the file that moves on with each value read, and never past the end."""

    def __init__(self, path: Path, content: memoryview) -> None:
        self.path = path
        self.position = 0
        self._content = content

    def skip(self, size_bytes: int) -> None:
        self._check_left(size_bytes)
        self.position += size_bytes

    def integer(self, code: str) -> int:
        (number,) = self._unpack(code, 1)
        return int(number)

    def text(self) -> str:
        size_bytes = self.integer("Q")
        self._check_left(size_bytes)
        start, self.position = self.position, self.position + size_bytes
        try:
            return str(self._content[start : self.position], "utf-8")
        except UnicodeDecodeError as error:
            raise CorruptFile(self.path, f"the string at byte {start:,} is not UTF-8") from error

    def value(self, key: str) -> Scalar | list[Scalar]:
        kind = self.integer("I")
        if kind == _ARRAY:
            return self._items(key, self.integer("I"), self.integer("Q"))
        return self._items(key, kind, 1)[0]

    def _items(self, key: str, kind: int, count: int) -> list[Scalar]:
        if kind == _STRING:
            self._check_left(8 * count)  # each has at least its length
            return [self.text() for _ in range(count)]
        if kind not in _NUMBERS:
            raise CorruptFile(self.path, f"metadata {key!r} has values of type {kind}, which the format does not know")
        return list(self._unpack(_NUMBERS[kind], count))

    def _unpack(self, code: str, count: int) -> tuple[int | float | bool, ...]:
        size_bytes = struct.calcsize(code) * count
        self._check_left(size_bytes)
        start, self.position = self.position, self.position + size_bytes
        return struct.unpack_from(f"<{count}{code}", self._content, start)

    def _check_left(self, size_bytes: int) -> None:
        end, length = self.position + size_bytes, len(self._content)
        if end > length:
            raise CorruptFile(self.path, f"is truncated: its header goes on to byte {end:,}, the file has {length:,}")
