"""What a conversion has to do, as a list of jobs that do not depend on each other.

A job makes one or several tensors of the whole model; dividing them over ranks and writing them is the same for all
(`rank_files`), so nothing here knows about ranks, and nothing there about quantisation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from tritonforge.checkpoint.placement import EMBEDDING, layer_of, split_of
from tritonforge.checkpoint.split import Split
from tritonforge.formats.safetensors import DTYPES, Array
from tritonforge.formats.trtllm import TrtllmConfig


class Stage(Enum):
    """Which pipeline stages hold a tensor that belongs to no layer."""

    FIRST = "the first"
    LAST = "the last"


@dataclass(frozen=True, slots=True)
class FullTensor:
    """A tensor of the target checkpoint before it is divided.

    Args:
        name: Its name with the layer's number in the whole model: ``transformer.layers.7.mlp.fc.weight``.
        dtype: The spelling of safetensors, a key of `DTYPES`.
        shape: Its shape in the whole model.
        split: How tensor-parallel ranks share it.
        layer: Number of its layer in the whole model; None when it belongs to none.
        stage: Where it is when it belongs to no layer.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    split: Split = Split()
    layer: int | None = None
    stage: Stage = Stage.FIRST

    @property
    def size_bytes(self) -> int:
        """Size of its data in the whole model."""
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize


@dataclass(frozen=True, slots=True)
class Job:
    """Tensors that are made together, whole.

    Args:
        tensors: What is made.
        make: Gives the values, in the order of `tensors`, of exactly their dtypes and shapes. Called once, in a thread.
        working_bytes: Memory that `make` holds at its peak, what it returns included.
    """

    tensors: tuple[FullTensor, ...]
    make: Callable[[], Sequence[Array]]
    working_bytes: int


@dataclass(frozen=True, slots=True)
class StreamJob:
    """One tensor that is made a few rows at a time, so that its size does not matter.

    Args:
        tensor: What is made.
        read: Gives rows from `start` up to `stop` (elements of a tensor with one dimension), checked and in its dtype.
            Called in threads, in any order.
    """

    tensor: FullTensor
    read: Callable[[int, int], Array]

    @property
    def tensors(self) -> tuple[FullTensor, ...]:
        """The tensor, as `Job` has them."""
        return (self.tensor,)


AnyJob = Job | StreamJob


def full_tensor(name: str, code: str, shape: tuple[int, ...], config: TrtllmConfig) -> FullTensor:
    """A tensor of floats at its place.

    Args:
        name: Its name in the whole model.
        code: Its dtype in the spelling of safetensors.
        shape: Its shape in the whole model.
        config: The target's configuration.
    """
    stage = Stage.FIRST if name == EMBEDDING else Stage.LAST
    return FullTensor(name, code, shape, split_of(name, config), layer_of(name), stage)
