"""The tensors of a checkpoint folder, whether they are in one safetensors file or spread over several.

What concerns a single file (header, memory map) is in `safetensors_file`, the writer in `safetensors_writer`; the names
that other stages need are offered here too.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from tritonforge.errors import CheckpointNotFound, CorruptFile, MissingWeight, UnsupportedModel
from tritonforge.formats.input_file import has_file, reading
from tritonforge.formats.json_fields import read_json_object
from tritonforge.formats.safetensors_file import (
    DTYPES,
    Array,
    TensorInfo,
    map_file,
    open_descriptor,
    read_exactly,
    read_header,
    view_tensor,
)
from tritonforge.formats.safetensors_writer import PlannedTensor, write_tensors

__all__ = ["DTYPES", "Array", "PlannedTensor", "TensorFolder", "TensorInfo", "read_header", "write_tensors"]

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors")
_MAX_NAME_BYTES = 255  # NAME_MAX of Linux
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_CONVERT_HINT = (
    "convert them once, where the checkpoint is trusted: "
    "transformers.AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER, safe_serialization=True)"
)


class TensorFolder:
    """All tensors of one or several safetensors files, by name. Files stay closed until a tensor is read.

    Args:
        place: Folder or file, for errors.
        tensors: The tensors by name.
    """

    def __init__(self, place: Path, tensors: Mapping[str, TensorInfo]) -> None:
        self.place = place
        self._tensors = dict(tensors)
        self._maps: dict[Path, Array] = {}
        self._lock = threading.Lock()
        self._descriptors: dict[Path, int] = {}
        weakref.finalize(self, _close_all, self._descriptors)

    @classmethod
    def open(cls, folder: Path) -> TensorFolder:
        """Open a folder: the files that its index names, else model.safetensors, else every safetensors file.

        Raises:
            CheckpointNotFound: There is no such folder, no weight file in it, or a shard is missing.
            CorruptFile: A file is damaged, or two files hold a tensor of the same name.
            MissingWeight: The index names a tensor that its file does not hold.
            UnsupportedModel: The weights are Python pickles.
        """
        with reading(folder):
            if not folder.is_dir():
                raise CheckpointNotFound(f"{folder}: no such folder")
            index = folder / INDEX_NAME
            if has_file(index):
                return cls(folder, _indexed_tensors(folder, index))
            single = folder / SINGLE_NAME
            files = [single] if has_file(single) else sorted(folder.glob("*.safetensors"))
            if not files:
                raise _no_weights(folder)
            _check_complete(files)
            return cls(folder, _merge(files))

    @classmethod
    def open_file(cls, file: Path) -> TensorFolder:
        """Open a single file.

        Raises:
            CheckpointNotFound: There is no such file.
            CorruptFile: It is damaged.
        """
        return cls(file, read_header(file))

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def names(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._tensors)

    def files(self) -> list[Path]:
        """The files that hold at least one tensor, sorted."""
        return sorted({tensor.file for tensor in self._tensors.values()})

    def info(self, name: str) -> TensorInfo:
        """What the header says of a tensor.

        Raises:
            MissingWeight: There is none of that name.
        """
        if name not in self._tensors:
            raise MissingWeight(name, folder=self.place)
        return self._tensors[name]

    def read(self, name: str) -> Array:
        """A tensor as a read-only view of the memory-mapped file; BF16 as ml_dtypes.bfloat16.

        Raises:
            MissingWeight: There is none of that name.
        """
        tensor = self.info(name)
        if tensor.file not in self._maps:
            self._maps[tensor.file] = map_file(tensor.file)
        return view_tensor(self._maps[tensor.file], tensor)

    def read_rows(self, name: str, start: int, out: Array) -> None:
        """Fill an array with rows of a tensor, copied from the file: nothing stays mapped. Threads may call it at once.

        Args:
            name: The tensor.
            start: Its first row that is wanted (element, where it has one dimension).
            out: Where they go: contiguous, as many rows as are wanted, of the tensor's dtype.

        Raises:
            MissingWeight: There is no tensor of that name.
            CorruptFile: The file cannot be read, or has become shorter.
        """
        tensor = self.info(name)
        with self._lock:
            if tensor.file not in self._descriptors:
                self._descriptors[tensor.file] = open_descriptor(tensor.file)
        row_bytes = (tensor.end - tensor.start) // tensor.shape[0]
        read_exactly(self._descriptors[tensor.file], tensor.start + start * row_bytes, out, tensor.file)


def _close_all(descriptors: Mapping[Path, int]) -> None:
    for descriptor in descriptors.values():
        os.close(descriptor)


def _indexed_tensors(folder: Path, index: Path) -> dict[str, TensorInfo]:
    weight_map = read_json_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CorruptFile(index, "has no weight_map that maps tensor names to files")
    for name, file_name in weight_map.items():
        # The hub's cache links shards to files elsewhere, so links are fine; names that leave the folder are not.
        if not isinstance(file_name, str) or not _is_file_name(file_name):
            raise CorruptFile(index, f"puts tensor {name!r} in {file_name!r}; expected the name of a file beside it")
        if not has_file(folder / file_name):
            raise CheckpointNotFound(
                f"{index}: tensor {name!r} should be in {file_name}, which does not exist",
                hint="download the missing file; a large checkpoint is only complete with all of its shards",
            )
    tensors = _merge([folder / file_name for file_name in sorted(set(weight_map.values()))])
    for name, file_name in weight_map.items():
        if name not in tensors or tensors[name].file.name != file_name:
            raise MissingWeight(name, folder=folder, hint=f"{INDEX_NAME} says that it is in {file_name}")
    return tensors


def _is_file_name(name: str) -> bool:
    """Whether a text can be the name of a file in a folder, as far as Linux is concerned."""
    encoded = name.encode("utf-8", errors="replace")
    return name == Path(name).name and name.isprintable() and 0 < len(encoded) <= _MAX_NAME_BYTES and name != ".."


def _merge(files: Sequence[Path]) -> dict[str, TensorInfo]:
    merged: dict[str, TensorInfo] = {}
    for file in files:
        for name, tensor in read_header(file).items():
            if name in merged:
                raise CorruptFile(
                    file,
                    f"tensor {name!r} is also in {merged[name].file.name}; expected each tensor once",
                    hint="keep the files of one checkpoint only in the folder",
                )
            merged[name] = tensor
    return merged


def _check_complete(files: Sequence[Path]) -> None:
    """Files named like shards (…-00001-of-00003) must all be there."""
    present = {file.name for file in files}
    for file in files:
        shard = _SHARD.fullmatch(file.name)
        for number in range(1, int(shard["count"]) + 1) if shard else ():
            sibling = f"{shard['stem']}-{number:05d}-of-{shard['count']}.safetensors" if shard else ""
            if sibling not in present:
                raise CheckpointNotFound(f"{file.parent / sibling}: no such file, although {file.name} asks for it")


def _no_weights(folder: Path) -> Exception:
    pickles = sorted(file.name for pattern in _PICKLES for file in folder.glob(pattern))
    if pickles:
        reason = f"its weights are Python pickles ({pickles[0]}), and reading a pickle runs the code in it"
        return UnsupportedModel(str(folder), [reason], hint=_CONVERT_HINT)
    return CheckpointNotFound(f"{folder}: holds no *.safetensors file")
