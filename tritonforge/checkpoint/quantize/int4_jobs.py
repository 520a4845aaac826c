"""The jobs of a conversion to 4-bit weights in the AWQ layout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tritonforge.checkpoint.finite import has_not_finite
from tritonforge.checkpoint.jobs import AnyJob, FullTensor, Job
from tritonforge.checkpoint.mapping import RowReader
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.checkpoint.quantize.awq import find_factors, multiply_inputs
from tritonforge.checkpoint.quantize.int4 import group_scales, pack, round_groups
from tritonforge.checkpoint.quantize.linears import Linear, linears_of
from tritonforge.checkpoint.quantize.ranges import ActivationRanges
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.checkpoint.split import Group, Split
from tritonforge.errors import CheckpointError
from tritonforge.formats.safetensors import DTYPES, Array
from tritonforge.formats.trtllm import FLOAT_TYPES, TrtllmConfig

_CHUNK_VALUES = 1 << 19
_CHUNK_BYTES = 32 * _CHUNK_VALUES
_TRIED_ROWS = 128  # by whose errors factors are judged
_PER_BYTE = 2


def int4_jobs(
    source: SourceCheckpoint, config: TrtllmConfig, options: ConvertOptions, ranges: ActivationRanges | None
) -> list[AnyJob]:
    """One job for each linear layer.

    Args:
        source: The checkpoint.
        config: The target's configuration.
        options: What was chosen.
        ranges: Inputs of all linear layers; without them weights are rounded as they are.
    """
    code = FLOAT_TYPES[config.dtype]
    jobs: list[AnyJob] = []
    for linear in linears_of(source):
        inputs = None if ranges is None else np.max([ranges.inputs(module) for module in linear.modules], axis=0)
        work = _Work(linear, RowReader(source, linear.target, code), inputs, options.group_size, code)
        made_bytes = linear.outputs * linear.inputs  # half of it weights, the rest is more than scales and samples take
        jobs.append(Job(_tensors(linear, config, options.group_size, code), work.make, made_bytes + _CHUNK_BYTES))
    return jobs


def _tensors(linear: Linear, config: TrtllmConfig, group_size: int, code: str) -> tuple[FullTensor, ...]:
    name, rows, columns = linear.name, linear.outputs, linear.inputs
    by_inputs = linear.split_of_inputs(axis=1)
    packed = by_inputs if linear.is_row_parallel else Split(axis=0, groups=_packed_groups(linear, config))
    scales = by_inputs if linear.is_row_parallel else linear.split_of_outputs(config, axis=0)
    factors = linear.split_of_inputs(axis=0)
    return (
        FullTensor(f"{name}.weight", "I8", (rows // _PER_BYTE, columns), packed, linear.layer),
        FullTensor(f"{name}.weights_scaling_factor", code, (rows, columns // group_size), scales, linear.layer),
        FullTensor(f"{name}.prequant_scaling_factor", code, (columns,), factors, linear.layer),
    )


def _packed_groups(linear: Linear, config: TrtllmConfig) -> tuple[Group, ...]:
    """Groups of output channels where two of them are one row. Heads have an even size, so that none is torn."""
    return tuple(
        Group(group.size // _PER_BYTE, group.repeats, max(1, group.block // _PER_BYTE))
        for group in linear.groups(config)
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """What makes the tensors of one layer.

    Args:
        linear: The layer.
        read: Gives its weights in the target's dtype.
        inputs: Largest absolute value of each input channel, if known.
        group_size: Input channels that share a scale.
        code: The target's dtype in the spelling of safetensors.
    """

    linear: Linear
    read: RowReader
    inputs: Array | None
    group_size: int
    code: str

    def make(self) -> tuple[Array, Array, Array]:
        """Packed weights, scales, and factors of the inputs."""
        rows, columns = self.linear.target.shape
        factors = self._factors()
        packed = np.empty((rows // _PER_BYTE, columns), np.int8)
        scales = np.empty((rows, columns // self.group_size), DTYPES[self.code])
        step = max(1, _CHUNK_VALUES // columns // _PER_BYTE) * _PER_BYTE
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            weights = self.read(start, stop)
            if self.inputs is not None:
                weights = self._multiplied(weights, factors)
            scales[start:stop] = group_scales(weights, self.group_size)
            packed[start // _PER_BYTE : stop // _PER_BYTE] = pack(round_groups(weights, scales[start:stop]))
        return packed, scales, factors

    def _factors(self) -> Array:
        columns = self.linear.inputs
        if self.inputs is None:
            return np.ones(columns, DTYPES[self.code])
        rows = np.unique(np.linspace(0, self.linear.outputs - 1, _TRIED_ROWS).astype(np.int64))
        sample = np.concatenate([self.read(int(row), int(row) + 1) for row in rows])
        return find_factors(sample, self.inputs, self.group_size)

    def _multiplied(self, weights: Array, factors: Array) -> Array:
        multiplied = multiply_inputs(weights, factors)
        if has_not_finite(multiplied):
            raise CheckpointError(
                f"{self.linear.name}: weights do not fit into {multiplied.dtype.name} once inputs are scaled down",
                hint="convert without activation ranges",
            )
        return multiplied
