"""The jobs of a conversion to 8-bit floats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tritonforge.checkpoint.jobs import AnyJob, FullTensor, Job, full_tensor
from tritonforge.checkpoint.mapping import RowReader
from tritonforge.checkpoint.quantize.fp8 import round_to_e4m3, scale_of
from tritonforge.checkpoint.quantize.linears import Linear, linears_of
from tritonforge.checkpoint.quantize.magnitudes import largest
from tritonforge.checkpoint.quantize.ranges import ActivationRanges
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.checkpoint.split import Split
from tritonforge.formats.safetensors import DTYPES, Array
from tritonforge.formats.trtllm import FLOAT_TYPES, TrtllmConfig

_CODE = "F8_E4M3"
_CHUNK_VALUES = 1 << 18
_CHUNK_BYTES = 32 * _CHUNK_VALUES


def fp8_jobs(source: SourceCheckpoint, config: TrtllmConfig, ranges: ActivationRanges) -> list[AnyJob]:
    """One job for each linear layer; query, key and value share their scales, since one product computes them.

    Args:
        source: The checkpoint.
        config: The target's configuration.
        ranges: Inputs of all linear layers.
    """
    jobs: list[AnyJob] = []
    for linear in linears_of(source):
        read = RowReader(source, linear.target, FLOAT_TYPES[config.dtype])
        work = _Work(linear, read, scale_of(ranges.largest_input(linear.modules)))
        name, layer = linear.name, linear.layer
        tensors = (
            full_tensor(f"{name}.weight", _CODE, linear.target.shape, config),
            FullTensor(f"{name}.weights_scaling_factor", "F32", (1,), Split(), layer),
            FullTensor(f"{name}.activation_scaling_factor", "F32", (1,), Split(), layer),
        )
        jobs.append(Job(tensors, work.make, linear.outputs * linear.inputs + _CHUNK_BYTES))
    return jobs


@dataclass(frozen=True, slots=True)
class _Work:
    """What makes the tensors of one layer.

    Args:
        linear: The layer.
        read: Gives its weights in the target's float dtype.
        input_scale: Takes e4m3 inputs to floats.
    """

    linear: Linear
    read: RowReader
    input_scale: np.float32

    def make(self) -> tuple[Array, Array, Array]:
        """Weights, their scale, and the scale of the inputs."""
        magnitudes = [float(largest(self.read(start, stop))) for start, stop in self._chunks()]
        scale = scale_of(np.float32(max(magnitudes)))
        weights = np.empty(self.linear.target.shape, DTYPES[_CODE])
        for start, stop in self._chunks():
            weights[start:stop] = round_to_e4m3(self.read(start, stop), scale)
        return weights, np.full(1, scale, np.float32), np.full(1, self.input_scale, np.float32)

    def _chunks(self) -> Iterator[tuple[int, int]]:
        rows = max(1, _CHUNK_VALUES // self.linear.inputs)
        for start in range(0, self.linear.outputs, rows):
            yield start, min(start + rows, self.linear.outputs)
