"""A GGUF file as typed metadata and memory-mapped tensors; the only place that imports the `gguf` package.

A file that is not whole is refused here; what its architecture and vocabulary mean is for others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tritonforge.checkpoint.gguf.header import MAGIC, StoredTensor, parse_header
from tritonforge.errors import CorruptFile, ToolMissing, UnsupportedModel
from tritonforge.formats.input_file import open_input
from tritonforge.formats.json_fields import JsonFields
from tritonforge.formats.safetensors_file import Array, map_file

_OLDERMAGICS = (b"lmgg", b"fmgg", b"tjgg")  # GGML, GGMF and GGJT: formats before GGUF, no longer read by anything
_VERSIONS = (2, 3)
_PART_NAME = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor of a GGUF file, still quantised.

    Args:
        name: Its name in the file, for example ``blk.0.attn_q.weight``.
        quantisation: The name of its storage type, for example ``Q4_1``.
        shape: Its dimensions once dequantised, rows first.
        blocks: Its bytes, a view into the memory map: ``[rows, row_bytes]``. One-dimensional tensors are one row.
    """

    name: str
    quantisation: str
    shape: tuple[int, ...]
    blocks: Array


@dataclass(frozen=True, slots=True)
class GgufFile:
    """An open GGUF file.

    Args:
        path: The file.
        fields: Its metadata, by key: numbers, strings, booleans and lists of them.
        tensors: Its tensors, by name.
    """

    path: Path
    fields: JsonFields
    tensors: Mapping[str, GgufTensor]

    def listed(self, key: str) -> list[Any] | None:
        """A list in the metadata, or None when the key is absent.

        Raises:
            CorruptFile: The key holds something else than a list.
        """
        value = self.fields.values.get(key)
        if value is not None and not isinstance(value, list):
            raise self.fields.wrong(key, value, "a list")
        return value


def open_gguf(path: Path) -> GgufFile:
    """Read the header of a GGUF file and map its tensors.

    Raises:
        CheckpointNotFound: There is no such file.
        CorruptFile: It is not a GGUF file, or it is truncated or damaged.
        UnsupportedModel: It is one part of several, in big-endian order, or of a version that is not known.
        ToolMissing: The `gguf` package is not installed.
    """
    _check_start(path)
    content = map_file(path)
    header = parse_header(path, content.data)
    tensors = {stored.name: _tensor(path, content, stored) for stored in header.tensors}
    file = GgufFile(path, JsonFields(header.fields, path), tensors)
    _check_whole(file)
    return file


def can_dequantise(quantisation: str) -> bool:
    """Whether `dequantise` knows a storage type; tried on one block of zeros."""
    gguf = _gguf()
    kind = gguf.GGMLQuantizationType[quantisation]
    _, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    try:
        gguf.dequantize(np.zeros((1, block_bytes), dtype=np.uint8), kind)
    except NotImplementedError:
        return False
    return True


def dequantise(blocks: Array, quantisation: str) -> Array:
    """Rows of stored bytes as rows of float32 values."""
    gguf = _gguf()
    values: Array = gguf.dequantize(blocks, gguf.GGMLQuantizationType[quantisation])
    return values


def _gguf() -> ModuleType:
    try:
        import gguf
    except ImportError as error:
        raise ToolMissing(
            "the Python package gguf", looked_in="this environment", hint="pip install 'tritonforge[gguf]'"
        ) from error
    return gguf


def _check_start(path: Path) -> None:
    """The first eight bytes say whether the file is GGUF, which version, and in which byte order."""
    with open_input(path) as stream:
        start = stream.read(8)
    if start[:4] in _OLDERMAGICS:
        raise UnsupportedModel(str(path), ["it is in a format older than GGUF"], hint="convert the model again to GGUF")
    if start[:4] != MAGIC or len(start) < 8:
        raise CorruptFile(path, f"starts with {start[:4]!r}; a GGUF file starts with {MAGIC!r}")
    version = int.from_bytes(start[4:], "little")
    if version & 0xFFFF == 0:
        raise UnsupportedModel(
            str(path),
            ["its numbers are in big-endian order"],
            hint="convert the model again for little-endian machines",
        )
    if version not in _VERSIONS:
        raise UnsupportedModel(str(path), [f"GGUF version {version} is not 2 or 3"])


def _check_whole(file: GgufFile) -> None:
    """Refuse one part of a model that is split over several files."""
    parts = file.fields.values.get("split.count")
    by_name = _PART_NAME.search(file.path.name)
    count = parts if isinstance(parts, int) else int(by_name.group(2)) if by_name else 1
    if count > 1:
        raise UnsupportedModel(
            str(file.path),
            [f"it is one of {count} parts of a split model"],
            hint="merge the parts first: llama-gguf-split --merge FIRST_PART OUT",
        )


def _tensor(path: Path, content: Array, stored: StoredTensor) -> GgufTensor:
    gguf = _gguf()
    try:
        kind = gguf.GGMLQuantizationType(stored.type_number)
    except ValueError as error:
        raise UnsupportedModel(
            f"{path}: tensor {stored.name!r}",
            [f"storage type {stored.type_number} is not known"],
            hint="a newer release of the Python package gguf may know it",
        ) from error
    block_size, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    rows, columns = math.prod(stored.shape[:-1]), stored.shape[-1]
    if columns % block_size:
        raise CorruptFile(path, f"tensor {stored.name!r} has rows of {columns}, not a multiple of {block_size}")
    row_bytes = columns // block_size * block_bytes
    end = stored.start + rows * row_bytes
    if end > len(content):
        raise CorruptFile(path, f"is truncated: {stored.name!r} ends at byte {end:,}, the file has {len(content):,}")
    return GgufTensor(stored.name, kind.name, stored.shape, content[stored.start : end].reshape(rows, row_bytes))
