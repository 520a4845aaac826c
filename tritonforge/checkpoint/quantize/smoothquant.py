"""SmoothQuant: 8-bit weights and activations, with the tensors that TensorRT-LLM's plugins read.

The operations are those of its own converter: for Llama of 0.12, 0.14 and 0.16.0.dev2024112600, which agree, for
ChatGLM of 0.14. One case of its output (Llama, per channel and per token, 0.16.0.dev2024112600) is matched to the bit,
the other modes were compared with the same operations in PyTorch. That is why weights pass through the dtypes that they
have there: a Llama is loaded as float16 whatever it is stored in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tritonforge.checkpoint.mapping import RowReader
from tritonforge.checkpoint.quantize.int8 import (
    LARGEST,
    Scales,
    quotient_of_127,
    round_products,
    round_quotients,
    scales_of,
)
from tritonforge.checkpoint.quantize.linears import QKV, Linear
from tritonforge.checkpoint.quantize.magnitudes import cast, largest
from tritonforge.checkpoint.quantize.smoothing import smooth_columns, smoother_of
from tritonforge.errors import CheckpointError
from tritonforge.formats.safetensors import DTYPES, Array
from tritonforge.formats.trtllm import FLOAT_TYPES, TrtllmConfig

_CHUNK_VALUES = 1 << 19
CHUNK_BYTES = 32 * _CHUNK_VALUES  # what a chunk takes while it is computed with, at most


@dataclass(frozen=True, slots=True)
class Method:
    """What was chosen for all linear layers.

    Args:
        alpha: How much of the activations' range moves into the weights.
        per_channel: A scale for each output channel; otherwise one for a weight, or for each of query, key and value.
        per_token: Activations are scaled at run time; otherwise by a constant in the checkpoint.
        stored: Dtype in which weights are smoothed.
    """

    alpha: float
    per_channel: bool
    per_token: bool
    stored: np.dtype[np.generic]


@dataclass(frozen=True, slots=True)
class Input:
    """A linear layer, and what was measured of it.

    Args:
        linear: The layer.
        read: Gives its weights in the dtype `Method.stored`.
        largest_inputs: Of each input channel, float32 [in].
        largest_output: Of all output channels.
    """

    linear: Linear
    read: RowReader
    largest_inputs: Array
    largest_output: np.float32


@dataclass(frozen=True, slots=True)
class Quantised:
    """What becomes of a linear layer.

    Args:
        weight: int8 [out, in].
        per_channel_scale: float32 [1, out], or [1, 1]: takes the sums of products of integers to floats (per token), or
            to the integers of the output (static).
        act_scale: float32 [1, 1], takes the integers of the output to floats; only used when static.
        scale_to_int: float32 [1], takes inputs to integers; 1 when that happens per token.
    """

    weight: Array
    per_channel_scale: Array
    act_scale: Array
    scale_to_int: Array


def find_smoother(inputs: Sequence[Input], method: Method) -> Array:
    """What the inputs of linear layers that read the same are divided by.

    Args:
        inputs: The layers; the measured inputs of the first count.
        method: What was chosen.

    Returns:
        float64 [in].

    Raises:
        CheckpointError: An input channel has only zero weights.
    """
    columns = np.zeros(inputs[0].linear.inputs, method.stored)
    for one in inputs:
        for start, stop in _chunks(one.linear):
            # Magnitudes sort like integers, so this is the maximum for bfloat16 too, which numpy does not know.
            columns = largest(np.stack([columns, largest(one.read(start, stop), axis=0)]), axis=0)
    smoother = smoother_of(inputs[0].largest_inputs, columns, method.alpha)
    if not np.isfinite(smoother).all():
        channel = int(np.argmin(np.isfinite(smoother)))
        raise CheckpointError(
            f"{inputs[0].linear.name}: all weights of input channel {channel} are 0, so it cannot be smoothed",
            hint="choose another precision, or smoothquant alpha 1",
        )
    return smoother


def quantise_linear(one: Input, smoother: Array, method: Method, config: TrtllmConfig) -> Quantised:
    """Smooth and quantise a linear layer.

    Args:
        one: The layer.
        smoother: What `find_smoother` gave, for this layer and those that read the same.
        method: What was chosen.
        config: The target's configuration.

    Raises:
        CheckpointError: Smoothed weights do not fit into their dtype.
    """
    weights, magnitudes = _smooth(one, smoother, method)
    groups = [group.size for group in one.linear.groups(config)] if one.linear.place == QKV else [one.linear.outputs]
    if method.per_channel:
        scales = of_rows = scales_of(magnitudes)
    else:
        scales = scales_of(_largest_of_groups(magnitudes, groups))
        of_rows = Scales(np.repeat(scales.to_int, groups), np.repeat(scales.to_float, groups))
        scales = of_rows if one.linear.place == QKV else scales  # the plugin wants one for each channel there
    integers = _round(weights, of_rows, one.linear, method, config)
    largest_input = np.asarray(one.largest_inputs.astype(np.float64) / smoother).max()
    input_scale, output_scale = quotient_of_127(largest_input), quotient_of_127(np.asarray(one.largest_output))
    return Quantised(
        weight=integers,
        per_channel_scale=(
            scales.to_float if method.per_token else _sum_scales(scales.to_int, input_scale, output_scale)
        ).reshape(1, -1),
        act_scale=np.full((1, 1), one.largest_output / np.float32(LARGEST), np.float32),
        scale_to_int=np.full(1, 1 if method.per_token else input_scale, np.float32),
    )


def _smooth(one: Input, smoother: Array, method: Method) -> tuple[Array, Array]:
    """Smoothed weights, and the largest of each row."""
    weights = np.empty(one.linear.target.shape, method.stored)
    for start, stop in _chunks(one.linear):
        weights[start:stop] = smooth_columns(one.read(start, stop), smoother)
    magnitudes = largest(weights, axis=1)
    if not np.isfinite(magnitudes.astype(np.float32)).all():
        raise CheckpointError(
            f"{one.linear.name}: smoothed weights do not fit into {method.stored.name}",
            hint=f"choose a smaller smoothquant alpha than {method.alpha:g}, or another precision",
        )
    return weights, magnitudes


def _largest_of_groups(magnitudes: Array, groups: Sequence[int]) -> Array:
    ends = np.cumsum(groups)
    return np.stack([largest(part) for part in np.split(magnitudes, ends[:-1])])


def _round(weights: Array, scales: Scales, linear: Linear, method: Method, config: TrtllmConfig) -> Array:
    """Weights as integers, with the roundings on the way that upstream's tensors of mixed dtypes bring about."""
    is_fused, is_chatglm = linear.place == QKV, config.chatglm is not None
    target = DTYPES[FLOAT_TYPES[config.dtype]]
    # There, query, key and value of Llama are not cast to the target's dtype once they are fused.
    multiplied = method.stored if is_fused and not is_chatglm else target
    single = np.dtype(np.float32)
    # A scale for all is a scalar, which leaves the product in the dtype of the weights; a row of scales does not.
    held = single if method.per_channel or is_fused else multiplied
    round_: Callable[..., Array] = round_products
    factors = scales.to_int
    if is_fused and not method.per_channel and (is_chatglm or config.num_key_value_heads < config.num_attention_heads):
        round_, factors = round_quotients, scales.to_float
        held = multiplied if multiplied == method.stored else single
    made = np.empty(weights.shape, np.int8)
    for start, stop in _chunks(linear):
        rows = cast(weights[start:stop], multiplied)
        made[start:stop] = round_(rows, factors[start:stop, None], dtype=held)
    return made


def _sum_scales(to_int: Array, input_scale: Array, output_scale: Array) -> Array:
    """What takes sums of products of integers to the integers of the output; 0 where the weights are all 0.

    Args:
        to_int: Of the weights; float32.
        input_scale: Takes inputs to integers; float64.
        output_scale: Takes outputs to integers; float32.
    """
    # One scale is a scalar in upstream's converter, and computed with in float64; several are not.
    kind = np.float64 if to_int.size == 1 else np.float32
    products = input_scale.astype(kind) * to_int.astype(kind)
    silent = products == 0
    quotients = output_scale.astype(kind) / np.where(silent, kind(1), products)
    return np.where(silent, kind(0), quotients).astype(np.float32)


def _chunks(linear: Linear) -> Iterator[tuple[int, int]]:
    rows = max(1, _CHUNK_VALUES // linear.inputs)
    for start in range(0, linear.outputs, rows):
        yield start, min(start + rows, linear.outputs)
