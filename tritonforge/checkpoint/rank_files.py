"""The weight files of all ranks, written at once: each tensor of the model is read once and divided as it passes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tritonforge.checkpoint.jobs import FullTensor, Stage
from tritonforge.checkpoint.placement import local_name, stage_layers
from tritonforge.checkpoint.split import Piece
from tritonforge.errors import UsageBug
from tritonforge.formats.safetensors import Array
from tritonforge.formats.safetensors_writer import TensorFile, TensorForm
from tritonforge.formats.trtllm import TrtllmConfig, rank_file_name

_METADATA = {"format": "pt"}


@dataclass(frozen=True, slots=True)
class _Share:
    """What one rank holds of a tensor.

    Args:
        file: File of the rank.
        form: Name, dtype and shape there.
        pieces: Ranges of the full tensor along its split axis, in this order.
    """

    file: int
    form: TensorForm
    pieces: tuple[Piece, ...]


class RankFiles:
    """The files of all ranks, with their space taken.

    Args:
        folder: Where they go.
        tensors: Everything that will be written, in the order of the files.
        config: The target's configuration: its ranks and layers.

    Raises:
        CheckpointError: There is not enough space for them.
    """

    def __init__(self, folder: Path, tensors: Sequence[FullTensor], config: TrtllmConfig) -> None:
        self._shares = {tensor.name: _shares(tensor, config) for tensor in tensors}
        if len(self._shares) != len(tensors):
            raise UsageBug("a tensor is planned twice")
        forms: list[list[TensorForm]] = [[] for _ in range(config.world_size)]
        for shares in self._shares.values():
            for share in shares:
                forms[share.file].append(share.form)
        self._files: list[TensorFile] = []
        try:
            for rank, of_rank in enumerate(forms):
                self._files.append(TensorFile(folder / rank_file_name(rank), of_rank, _METADATA))
        except BaseException:
            self.discard()
            raise

    def place(self, tensor: FullTensor, first: int, rows: Array) -> None:
        """Write rows of a tensor to every rank that holds a part of them. Threads may call it at once.

        Args:
            tensor: The tensor.
            first: Number of the first row in the whole tensor.
            rows: The rows, contiguous.

        Raises:
            CheckpointError: They cannot be written.
        """
        for share in self._shares[tensor.name]:
            for row, values in _cut(tensor, share.pieces, first, rows):
                row_bytes = int(np.prod(share.form.shape[1:], dtype=np.int64)) * values.itemsize
                self._files[share.file].write(share.form.name, row * row_bytes, values)

    def close(self) -> None:
        """Close them, once all is written. As after a copy, the disk has them some seconds later.

        Raises:
            CheckpointError: The disk did not take it.
        """
        while self._files:
            self._files.pop().close(sync=False)

    def discard(self) -> None:
        """Close and remove them."""
        for file in self._files:
            file.discard()


@contextlib.contextmanager
def rank_files(folder: Path, tensors: Sequence[FullTensor], config: TrtllmConfig) -> Iterator[RankFiles]:
    """Files to fill; removed when the block fails. Arguments as of `RankFiles`."""
    files = RankFiles(folder, tensors, config)
    try:
        yield files
        files.close()
    except BaseException:
        files.discard()
        raise


def _shares(tensor: FullTensor, config: TrtllmConfig) -> tuple[_Share, ...]:
    stages = stage_layers(config.num_hidden_layers, config.pp_size)
    found = []
    for stage, layers in enumerate(stages):
        if tensor.layer is None:
            here = stage == (0 if tensor.stage is Stage.FIRST else config.pp_size - 1)
        else:
            here = tensor.layer in layers
        if here:
            name = local_name(tensor.name, layers.start)
            form = TensorForm(name, tensor.dtype, tensor.split.rank_shape(tensor.shape, tp=config.tp_size))
            for rank in range(config.tp_size):
                pieces = tensor.split.pieces(tensor.shape, tp=config.tp_size, rank=rank)
                found.append(_Share(stage * config.tp_size + rank, form, pieces))
    return tuple(found)


def _cut(tensor: FullTensor, pieces: tuple[Piece, ...], first: int, rows: Array) -> Iterator[tuple[int, Array]]:
    """What a rank takes from some rows: the row of the rank where it goes, and the values, contiguous."""
    if tensor.split.axis == 1:
        parts = [rows[:, piece.start : piece.stop] for piece in pieces]
        yield first, np.ascontiguousarray(parts[0]) if len(parts) == 1 else np.concatenate(parts, axis=1)
        return
    position = 0
    for piece in pieces:
        start, stop = max(first, piece.start), min(first + len(rows), piece.stop)
        if start < stop:
            yield position + start - piece.start, rows[start - first : stop - first]
        position += piece.size
