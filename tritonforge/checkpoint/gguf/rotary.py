"""Rotary scaling of a GGUF file: what its keys and its `rope_freqs` tensor mean in Hugging Face's terms. Pure.

GGUF keeps Llama 3's scaling as one factor per rotary frequency. The four parameters that these came from are not in the
file, so they are looked for among those that Meta has published, and taken only when they give the file's own factors.
"""

from __future__ import annotations

import numpy as np

from tritonforge.checkpoint.gguf.reader import GgufFile, dequantise
from tritonforge.errors import UnsupportedModel
from tritonforge.formats.rotary import LINEAR, LLAMA3, RotaryScaling
from tritonforge.formats.safetensors import Array

FREQUENCY_FACTORS = "rope_freqs.weight"
_LLAMA3_LOW, _LLAMA3_HIGH = 1.0, 4.0
_LLAMA3_ORIGINAL_POSITIONS = 8192
_TOLERANCE = 1e-5  # relative; the factors are stored as float32


def read_scaling(file: GgufFile, *, rotary_base: float, head_size: int) -> RotaryScaling | None:
    """The scaling of a Llama GGUF file, or None when its positions are not scaled.

    Args:
        file: The file.
        rotary_base: Base of the rotary frequencies.
        head_size: Dimensions of one attention head, all of them rotated.

    Raises:
        UnsupportedModel: The file scales in a way that is neither linear nor Llama 3's.
    """
    linear = _linear_scaling(file)
    tensor = file.tensors.get(FREQUENCY_FACTORS)
    if tensor is None:
        return linear
    factors = dequantise(tensor.blocks, tensor.quantisation).reshape(-1)
    original = _original_positions(file)
    if factors.shape == (head_size // 2,) and np.isfinite(factors).all() and (factors > 0).all():
        if np.allclose(factors, 1.0, rtol=_TOLERANCE):
            return linear
        scaling = _llama3(float(factors[-1]), original)
        expected = _factors(scaling, rotary_base=rotary_base, head_size=head_size)
        if linear is None and np.allclose(factors, expected, rtol=_TOLERANCE):
            return scaling
    raise UnsupportedModel(
        str(file.path),
        [f"the frequency factors in {FREQUENCY_FACTORS} are not Llama 3's scaling with {original} positions"],
    )


def _factors(scaling: RotaryScaling, *, rotary_base: float, head_size: int) -> Array:
    """By what a scaling divides each rotary frequency, ``[head_size / 2]``."""
    frequencies = [rotary_base ** (-index / head_size) for index in range(0, head_size, 2)]
    return np.array([frequency / scaling.stretched(frequency) for frequency in frequencies])


def _llama3(factor: float, original: int) -> RotaryScaling:
    return RotaryScaling(
        kind=LLAMA3,
        factor=factor,
        low_freq_factor=_LLAMA3_LOW,
        high_freq_factor=_LLAMA3_HIGH,
        original_max_position_embeddings=original,
        kind_keys=("rope_type",),
    )


def _linear_scaling(file: GgufFile) -> RotaryScaling | None:
    fields = file.fields
    kind = fields.text("llama.rope.scaling.type", "none")
    if kind == "none":
        # The key of files from before scaling types; llama.cpp takes it as linear.
        factor = fields.number("llama.rope.scale_linear", 1.0)
    elif kind == LINEAR:
        factor = fields.number("llama.rope.scaling.factor", 1.0)
    else:
        raise UnsupportedModel(str(file.path), [f"rotary scaling of type {kind!r} is not linear or Llama 3's"])
    return None if factor == 1.0 else RotaryScaling(kind=LINEAR, factor=factor, kind_keys=("rope_type", "type"))


def _original_positions(file: GgufFile) -> int:
    return file.fields.integer("llama.rope.scaling.original_context_length", _LLAMA3_ORIGINAL_POSITIONS)
