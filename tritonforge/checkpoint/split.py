"""How one tensor is divided over tensor-parallel ranks. Pure arithmetic on rows and columns.

Along one axis a tensor consists of groups that are split one by one: query, key and value of a fused projection, or the
two halves of a fused MLP. A rank holds its share of each group, one after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

from tritonforge.errors import UsageBug


@dataclass(frozen=True, slots=True)
class Group:
    """A run of rows (or columns) that is split evenly.

    Args:
        size: How many there are.
        repeats: How often each block is repeated, contiguously, before the split: key and value heads where there are
            fewer of them than ranks.
        block: Rows of what is repeated as a whole: the head size.
    """

    size: int
    repeats: int = 1
    block: int = 1


@dataclass(frozen=True, slots=True)
class Piece:
    """A half-open range of a full tensor along its split axis."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many rows or columns it has."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Split:
    """How a tensor is divided.

    Args:
        axis: 0 (rows) or 1 (columns); None: every rank holds the whole tensor.
        groups: What is split one by one, in order; empty: the whole axis is one group.
        padded: Zeros are added at the end so that the axis becomes a multiple of the ranks. Needs a single group.
    """

    axis: int | None = None
    groups: tuple[Group, ...] = ()
    padded: bool = False

    def pieces(self, shape: tuple[int, ...], *, tp: int, rank: int) -> tuple[Piece, ...]:
        """What a rank holds along the axis, in the order in which it holds it; without the zeros.

        Args:
            shape: Shape of the full tensor.
            tp: Number of tensor-parallel ranks.
            rank: Which of them.

        Raises:
            UsageBug: The tensor cannot be divided like that; what can be is checked before anything is planned.
        """
        if self.axis is None:
            return (Piece(0, shape[0]),)
        size = shape[self.axis]
        groups = self.groups or (Group(size),)
        if sum(group.size for group in groups) != size or (self.padded and len(groups) > 1):
            raise UsageBug(f"{self} does not describe a tensor of shape {list(shape)}")
        starts = accumulate((group.size for group in groups), initial=0)
        shares = (self._share(group, start, tp, rank) for group, start in zip(groups, starts, strict=False))
        return tuple(share for share in shares if share.size)

    def rank_shape(self, shape: tuple[int, ...], *, tp: int) -> tuple[int, ...]:
        """Shape of the tensor in each rank; all ranks have the same.

        Args:
            shape: Shape of the full tensor.
            tp: Number of tensor-parallel ranks.
        """
        if self.axis is None:
            return shape
        held = sum(piece.size for piece in self.pieces(shape, tp=tp, rank=0))
        size = math.ceil(shape[self.axis] / tp) if self.padded else held
        return (*shape[: self.axis], size, *shape[self.axis + 1 :])

    def _share(self, group: Group, start: int, tp: int, rank: int) -> Piece:
        if self.padded:
            size = math.ceil(group.size / tp)
            return Piece(start + min(rank * size, group.size), start + min((rank + 1) * size, group.size))
        total = group.size * group.repeats
        if total % tp:
            raise UsageBug(f"{group} does not divide into {tp} ranks")
        size = total // tp
        first = rank * size
        if group.repeats == 1:
            return Piece(start + first, start + first + size)
        # Ranks are a multiple of the heads, so each rank holds one copy of one head.
        if size != group.block:
            raise UsageBug(f"{group} is repeated, but does not give one block to each of {tp} ranks")
        block = first // (group.block * group.repeats)
        return Piece(start + block * group.block, start + (block + 1) * group.block)
