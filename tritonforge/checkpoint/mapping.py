"""From source tensors to the values of one target tensor: arrange rows, then change the dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tritonforge.checkpoint.cast import cast_into
from tritonforge.checkpoint.families.base import Arrangement, SourceTensor, TargetTensor
from tritonforge.checkpoint.finite import count_not_finite, has_not_finite
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.errors import CheckpointError, CorruptFile
from tritonforge.formats.safetensors import DTYPES, Array

# By dtype in the spelling of safetensors: its largest value, and the next dtype that holds larger ones.
_LARGEST = {"F16": "65504", "BF16": "3.38953e+38"}
_WIDER = {"F16": "bfloat16", "BF16": "float32"}
_BLOCK_BYTES = 8 << 20  # what is read at a time to find out what is wrong


@dataclass(frozen=True, slots=True)
class Run:
    """Rows that follow each other in a source and in the target.

    Args:
        source: The source.
        source_row: The first of them there.
        row: The first of them in the target.
        rows: How many.
    """

    source: SourceTensor
    source_row: int
    row: int
    rows: int


class RowReader:
    """Rows of one target tensor: arranged, in its dtype, and checked to be numbers.

    Args:
        source: The checkpoint to read from.
        target: The tensor.
        code: Its dtype in the spelling of safetensors.
    """

    def __init__(self, source: SourceCheckpoint, target: TargetTensor, code: str) -> None:
        self._source = source
        self._target = target
        self._code = code
        self._runs = arrange(target, heads=source.config.num_attention_heads)

    def __call__(self, start: int, stop: int) -> Array:
        """Rows from `start` up to `stop`; elements of a tensor with one dimension.

        Raises:
            CheckpointError: A value is NaN or infinite, or does not fit into the dtype.
            CorruptFile: The file cannot be read.
        """
        made = np.empty((stop - start, *self._target.shape[1:]), DTYPES[self._code])
        for run in self._runs:
            first, last = max(start, run.row), min(stop, run.row + run.rows)
            if first < last:
                self._read(run, first, made[first - start : last - start])
        return made

    def whole(self) -> Array:
        """All rows."""
        return self(0, self._target.shape[0])

    def _read(self, run: Run, first: int, out: Array) -> None:
        weights, name = self._source.weights, run.source.name
        stored = weights.info(name).dtype
        raw = out if stored == self._code else np.empty(out.shape, DTYPES[stored])
        weights.read_rows(name, run.source_row + first - run.row, raw)
        if raw is not out:
            cast_into(raw, out)
        # Every type fits into float32, so what is there before the cast says the same and is not wider.
        if has_not_finite(raw if out.dtype == np.float32 else out):
            raise _unusable(self._source, self._target, self._code)


def arrange(target: TargetTensor, *, heads: int) -> tuple[Run, ...]:
    """Where the rows of a target come from, in the order of the target.

    Args:
        target: The target.
        heads: Number of attention heads, for `UNZIP_HEADS`.
    """
    runs = [(source, 0, source.shape[0]) for source in target.sources]
    if target.arrangement is not Arrangement.CONCATENATE:
        (source, _, rows), parts = runs[0], 2 if target.arrangement is Arrangement.SWAP_HALVES else 3 * heads
        size = rows // parts
        # Stored [head, (q, k, v), D, …], wanted [(q, k, v), head, D, …]; the halves just change places.
        order = [1, 0] if parts == 2 else [3 * head + part for part in range(3) for head in range(heads)]
        runs = [(source, block * size, size) for block in order]
    starts = accumulate((rows for _, _, rows in runs), initial=0)
    return tuple(Run(source, first, row, rows) for (source, first, rows), row in zip(runs, starts, strict=False))


def _unusable(source: SourceCheckpoint, target: TargetTensor, code: str) -> CheckpointError:
    """Why a target has values that are not finite: its sources have, or the dtype is too narrow for them."""
    largest: dict[str, float] = {}
    for part in target.sources:
        count = 0
        for values in _blocks(source, part):
            count += count_not_finite(values)
            largest[part.name] = max(largest.get(part.name, 0.0), float(np.max(np.abs(values.astype(np.float32)))))
        if count:
            return CorruptFile(
                source.weights.info(part.name).file,
                f"tensor {part.name!r} has {count:,} values that are NaN or infinite",
            )
    name = max(largest, key=lambda name: largest[name])
    return CheckpointError(
        f"{name}: the value {largest[name]:g} does not fit into {DTYPES[code].name} (largest: {_LARGEST[code]})",
        hint=f"convert to {_WIDER[code]} instead",
    )


def _blocks(source: SourceCheckpoint, part: SourceTensor) -> Iterator[Array]:
    dtype = DTYPES[source.weights.info(part.name).dtype]
    rows = max(1, _BLOCK_BYTES // (math.prod(part.shape[1:]) * dtype.itemsize))
    for start in range(0, part.shape[0], rows):
        block = np.empty((min(rows, part.shape[0] - start), *part.shape[1:]), dtype)
        source.weights.read_rows(part.name, start, block)
        yield block
