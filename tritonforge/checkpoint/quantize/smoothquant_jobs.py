"""The jobs of a SmoothQuant conversion: which tensors belong together, and how ranks share them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tritonforge.checkpoint.families.base import TargetTensor
from tritonforge.checkpoint.jobs import AnyJob, FullTensor, Job, StreamJob, full_tensor
from tritonforge.checkpoint.mapping import RowReader
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.checkpoint.quantize.linears import DENSE, FC, GATE, PROJ, QKV, Linear, by_layer, linears_of
from tritonforge.checkpoint.quantize.magnitudes import cast
from tritonforge.checkpoint.quantize.ranges import ActivationRanges
from tritonforge.checkpoint.quantize.smoothing import smooth_norm
from tritonforge.checkpoint.quantize.smoothquant import (
    CHUNK_BYTES,
    Input,
    Method,
    Quantised,
    find_smoother,
    quantise_linear,
)
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.checkpoint.split import Split
from tritonforge.errors import CheckpointError
from tritonforge.formats.safetensors import DTYPES, Array
from tritonforge.formats.trtllm import FLOAT_TYPES, TrtllmConfig

_HALF = "F16"
# Linear layers that read the same, the norm before them, and where the scale of their inputs is kept.
_BLOCKS: tuple[tuple[tuple[str, ...], str | None, str], ...] = (
    ((QKV,), "input_layernorm.weight", "input_layernorm.scale_to_int"),
    ((DENSE,), None, "attention.quantization_scaling_factor"),
    ((FC, GATE), "post_layernorm.weight", "post_layernorm.scale_to_int"),
    ((PROJ,), None, "mlp.quantization_scaling_factor"),
)


def smoothquant_jobs(
    source: SourceCheckpoint, config: TrtllmConfig, options: ConvertOptions, ranges: ActivationRanges
) -> list[AnyJob]:
    """Everything that SmoothQuant makes otherwise than as plain floats.

    Args:
        source: The checkpoint.
        config: The target's configuration.
        options: What was chosen.
        ranges: Inputs and outputs of all linear layers.
    """
    linears = linears_of(source)
    stored = _stored(source, config, linears[0])
    method = Method(
        alpha=options.smoothquant.alpha,
        per_channel=options.smoothquant.per_channel,
        per_token=options.smoothquant.per_token,
        stored=DTYPES[stored],
    )
    targets = {target.name: target for target in source.targets}
    jobs: list[AnyJob] = []
    for layer, places in by_layer(linears).items():
        for names, norm, scale in _BLOCKS:
            block = _Block(
                inputs=tuple(_input(places[name], source, stored, ranges) for name in names if name in places),
                norm=None if norm is None else targets[f"transformer.layers.{layer}.{norm}"],
                scale=f"transformer.layers.{layer}.{scale}",
                source=source,
                config=config,
                method=method,
                stored=stored,
            )
            jobs.append(Job(block.tensors(), block.make, block.working_bytes()))
    made = {tensor.name for job in jobs if isinstance(job, Job) for tensor in job.tensors}
    return jobs + (_through_half(source, config, made) if config.chatglm is None else [])


def _stored(source: SourceCheckpoint, config: TrtllmConfig, linear: Linear) -> str:
    """The dtype in which upstream's converter holds the weights: float16 for Llama, as they are stored for ChatGLM."""
    return _HALF if config.chatglm is None else source.weights.info(linear.target.sources[0].name).dtype


def _input(linear: Linear, source: SourceCheckpoint, stored: str, ranges: ActivationRanges) -> Input:
    return Input(
        linear=linear,
        read=RowReader(source, linear.target, stored),
        largest_inputs=ranges.inputs(linear.modules[0]),
        largest_output=ranges.largest_output(linear.modules),
    )


@dataclass(frozen=True, slots=True)
class _Block:
    """Linear layers that read the same.

    Args:
        inputs: The layers.
        norm: The norm that they read from, if they do.
        scale: Name of the tensor that scales their inputs.
        source: The checkpoint.
        config: The target's configuration.
        method: What was chosen.
        stored: The dtype in which weights are smoothed, in the spelling of safetensors.
    """

    inputs: tuple[Input, ...]
    norm: TargetTensor | None
    scale: str
    source: SourceCheckpoint
    config: TrtllmConfig
    method: Method
    stored: str

    @property
    def _keeps_scale(self) -> bool:
        """Norms always carry a scale; behind other inputs there is one when it is a constant."""
        return self.norm is not None or not self.method.per_token

    @property
    def _scale_dtype(self) -> str:
        # Upstream's ChatGLM converter writes the 1 of per-token scaling as float16.
        return _HALF if self.config.chatglm is not None and self.method.per_token else "F32"

    def tensors(self) -> tuple[FullTensor, ...]:
        """What is made, in the order of `make`."""
        layer = self.inputs[0].linear.layer
        found = [tensor for one in self.inputs for tensor in self._of_linear(one.linear)]
        if self._keeps_scale:
            found.append(FullTensor(self.scale, self._scale_dtype, (1,), Split(), layer))
        if self.norm is not None:
            code = FLOAT_TYPES[self.config.dtype]
            found.append(full_tensor(self.norm.name, code, self.norm.shape, self.config))
        return tuple(found)

    def make(self) -> list[Array]:
        """The values."""
        smoother = find_smoother(self.inputs, self.method)
        made: list[Array] = []
        scale: Array | None = None
        for one in self.inputs:
            quantised = quantise_linear(one, smoother, self.method, self.config)
            made += self._values(quantised, smoother)
            # Of the layers behind one norm, the first (fc) decides: upstream writes its scale last.
            scale = quantised.scale_to_int if scale is None else scale
        if self._keeps_scale and scale is not None:
            made.append(scale.astype(DTYPES[self._scale_dtype]))
        if self.norm is not None:
            made.append(self._smoothed_norm(self.norm, smoother))
        return made

    def working_bytes(self) -> int:
        """Memory that `make` takes: all integers, and the smoothed weights of one layer."""
        weights = [one.linear.outputs * one.linear.inputs for one in self.inputs]
        return sum(weights) + max(weights) * self.method.stored.itemsize + CHUNK_BYTES

    def _of_linear(self, linear: Linear) -> list[FullTensor]:
        name, layer, config = linear.name, linear.layer, self.config
        scales = linear.outputs if self.method.per_channel or linear.place == QKV else 1
        split = linear.split_of_outputs(config, axis=1) if scales > 1 else Split()
        found = [
            full_tensor(f"{name}.weight", "I8", linear.target.shape, config),
            FullTensor(f"{name}.per_channel_scale", "F32", (1, scales), split, layer),
        ]
        if not self.method.per_token:
            found.append(FullTensor(f"{name}.act_scale", "F32", (1, 1), Split(), layer))
        if self.norm is None:
            split = linear.split_of_inputs(axis=1)
            found.append(FullTensor(f"{name}.smoother", "F32", (1, linear.inputs), split, layer))
        return found

    def _values(self, quantised: Quantised, smoother: Array) -> list[Array]:
        found = [quantised.weight, quantised.per_channel_scale]
        if not self.method.per_token:
            found.append(quantised.act_scale)
        if self.norm is None:
            found.append(smoother.astype(np.float32).reshape(1, -1))
        return found

    def _smoothed_norm(self, norm: TargetTensor, smoother: Array) -> Array:
        read = RowReader(self.source, norm, self.stored)
        smoothed = smooth_norm(read.whole(), smoother)
        values = cast(smoothed, DTYPES[FLOAT_TYPES[self.config.dtype]])
        if not np.isfinite(values.astype(np.float32)).all():
            raise CheckpointError(
                f"{norm.name}: smoothed weights do not fit into {values.dtype.name}",
                hint="the activation ranges of some channels are close to 0: record them with more text",
            )
        return values


def _through_half(source: SourceCheckpoint, config: TrtllmConfig, made: set[str]) -> list[AnyJob]:
    """What stays floats of a Llama, where it passes through float16 on its way to another dtype as upstream's does."""
    code = FLOAT_TYPES[config.dtype]
    if code == _HALF:
        return []
    return [
        StreamJob(
            full_tensor(target.name, code, target.shape, config),
            _HalfReader(RowReader(source, target, _HALF), DTYPES[code]),
        )
        for target in source.targets
        if target.name not in made
    ]


@dataclass(frozen=True, slots=True)
class _HalfReader:
    """Rows that were rounded to float16, in another dtype."""

    read: RowReader
    dtype: np.dtype[np.generic]

    def __call__(self, start: int, stop: int) -> Array:
        return cast(self.read(start, stop), self.dtype)
