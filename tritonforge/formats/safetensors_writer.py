"""safetensors, written: the space is taken first, then tensors arrive in any order, in parts, from several threads."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tritonforge.errors import CheckpointError, UsageBug
from tritonforge.formats.safetensors_file import DTYPES, LENGTH_BYTES, Array


@dataclass(frozen=True, slots=True)
class TensorForm:
    """A tensor that is about to be written.

    Args:
        name: Its name.
        dtype: The format's spelling, a key of `DTYPES`.
        shape: Its dimensions.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Size of its data."""
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize


@dataclass(frozen=True, slots=True)
class PlannedTensor(TensorForm):
    """A tensor that is about to be written, and how it is made.

    Args:
        make: Gives the values, of exactly that dtype and shape, when their turn has come.
    """

    make: Callable[[], Array]


class TensorFile:
    """A new file whose header and size are fixed. What is never written reads as zeros.

    Args:
        path: The file; must not exist.
        tensors: What it holds, in this order; names must differ.
        metadata: Free strings for the header.

    Raises:
        CheckpointError: It cannot be made, for example because the disk is full.
        UsageBug: Two names are equal.
    """

    def __init__(self, path: Path, tensors: Sequence[TensorForm], metadata: Mapping[str, str] | None = None) -> None:
        header = _header_bytes(tensors, metadata)
        self._path = path
        self._starts: dict[str, int] = {}
        position = len(header)
        for tensor in tensors:
            self._starts[tensor.name] = position
            position += tensor.size_bytes
        self._total_bytes = position
        with self._writing():
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with self._writing():
                os.posix_fallocate(self._descriptor, 0, self._total_bytes)
            self._write(0, np.frombuffer(header, np.uint8))
        except BaseException:
            self.discard()
            raise

    def write(self, name: str, start_bytes: int, values: Array) -> None:
        """Write a part of a tensor.

        Args:
            name: The tensor.
            start_bytes: Where the part begins within the tensor.
            values: The part, contiguous.

        Raises:
            CheckpointError: It cannot be written.
        """
        self._write(self._starts[name] + start_bytes, values.reshape(-1).view(np.uint8))

    def close(self, *, sync: bool = True) -> None:
        """Close the file.

        Args:
            sync: Wait until the disk has it, so that a power cut cannot leave a file of the right size full of zeros.

        Raises:
            CheckpointError: The disk did not take it.
        """
        try:
            if sync:
                with self._writing():
                    os.fsync(self._descriptor)
        finally:
            os.close(self._descriptor)

    def discard(self) -> None:
        """Close and remove the file."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._path.unlink(missing_ok=True)

    def _write(self, position: int, data: Array) -> None:
        view = data.data
        with self._writing():
            while view:
                count = os.pwrite(self._descriptor, view, position)
                view, position = view[count:], position + count

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CheckpointError(
                f"{self._path}: cannot write {self._total_bytes:,} bytes: {error.strerror}",
                hint="free some space, or choose an output folder on another disk",
            ) from error


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
    file = TensorFile(path, tensors, metadata)
    try:
        for tensor in tensors:
            values = tensor.make()
            check_made(tensor, values)
            file.write(tensor.name, 0, np.ascontiguousarray(values))
        file.close()
    except BaseException:
        file.discard()
        raise


def check_made(planned: TensorForm, values: Array) -> None:
    """Check that a tensor was made as it was planned.

    Raises:
        UsageBug: Its dtype or shape is another one.
    """
    if values.dtype != DTYPES[planned.dtype] or values.shape != planned.shape:
        made = f"{values.dtype} {list(values.shape)}"
        raise UsageBug(f"{planned.name} was planned as {planned.dtype} {list(planned.shape)}, but made as {made}")


def _header_bytes(tensors: Sequence[TensorForm], metadata: Mapping[str, str] | None) -> bytes:
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
    return len(text).to_bytes(LENGTH_BYTES, "little") + text
