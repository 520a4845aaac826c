"""SmoothQuant of one group of linear layers in PyTorch: the reference for every rounding on the way.

TensorRT-LLM's converter is a chain of PyTorch operations on tensors of mixed dtypes, and which dtype each result has
follows from PyTorch's own rules. Here they apply themselves; the package has to reproduce them with numpy.
"""

from dataclasses import dataclass, field

import pytest

torch = pytest.importorskip("torch")


@dataclass
class Case:
    """A group of layers that read the same.

    Args:
        weights: [out, in] each, in the dtype in which they are smoothed.
        inputs: Largest inputs of each layer [in].
        outputs: Largest outputs of each layer [out].
        norm: Weights of the norm before them [in].
        alpha, per_channel, per_token: As chosen.
        target: Dtype of the checkpoint.
        parts: Output channels of query, key and value, for the one layer that fuses them.
        keeps_dtype: The fused weights are not cast to the target's dtype (Llama).
        divides: One scale for each part divides the weights (fewer key and value heads than heads, and ChatGLM).
    """

    weights: list
    inputs: list
    outputs: list
    norm: object
    alpha: float
    per_channel: bool
    per_token: bool
    target: object
    parts: list = field(default_factory=list)
    keeps_dtype: bool = True
    divides: bool = True


def smoothquant(case: Case) -> tuple[list[dict], object, object]:
    """For each layer its tensors, without the smoother; then the smoothed norm, and the smoother in float64."""
    weights = [weight.clone() for weight in case.weights]
    columns = torch.stack([weight.abs().amax(dim=0) for weight in weights]).amax(dim=0)
    smoother = (case.inputs[0].double() ** case.alpha / columns.pow(1 - case.alpha)).clamp(min=1e-5)
    norm = case.norm.clone()
    norm /= smoother
    for weight in weights:
        weight *= smoother
    layers = [
        _layer(case, weight, (inputs / smoother).max(), outputs.max())
        for weight, inputs, outputs in zip(weights, case.inputs, case.outputs, strict=True)
    ]
    return layers, norm.to(case.target), smoother


def _layer(case: Case, weight: object, largest_input: object, largest_output: object) -> dict:
    rows = weight.abs().amax(dim=1)
    multiplied = weight if case.parts and case.keeps_dtype else weight.to(case.target)
    if case.per_channel:
        to_int = 127.0 / rows
        integers = multiplied * to_int.float()[:, None]
    elif case.parts:
        to_int = 127.0 / torch.stack([part.max() for part in rows.split(case.parts)])
        sizes = torch.tensor(case.parts)
        if case.divides:
            integers = multiplied / (1.0 / to_int).repeat_interleave(sizes)[:, None]
        else:
            integers = multiplied * to_int.float().repeat_interleave(sizes)[:, None]
        to_int = to_int.repeat_interleave(sizes)
    else:
        to_int = 127.0 / rows.max()
        integers = multiplied * to_int.float()
    to_float = (1.0 / to_int).float()
    input_scale, output_scale = 127.0 / largest_input, 127.0 / largest_output
    sums = (output_scale / (input_scale * to_int.float())).float()
    return {
        "weight": integers.round().clip(-127, 127).to(torch.int8),
        "per_channel_scale": (to_float if case.per_token else sums).reshape(1, -1),
        "act_scale": (largest_output / 127.0).float().reshape(1, 1),
        "scale_to_int": torch.ones(1) if case.per_token else input_scale.float().reshape(1),
    }
