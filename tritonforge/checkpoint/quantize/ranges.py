"""The file of activation ranges: how large inputs and outputs of each linear layer were while a model read some text.

For each linear module of the Hugging Face model, by its name there:

- ``<module>.x`` [in]: the largest absolute value of each input channel,
- ``<module>.y`` [out]: the largest absolute value of each output channel,
- ``<module>.w`` [out]: the largest absolute weight of each output channel; accepted and not used, since it follows from
  the weights.

A safetensors file of float32, float16 or bfloat16. docs/quantisation.md has a script that records it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from tritonforge.checkpoint.options import WRITTEN
from tritonforge.checkpoint.quantize.linears import Linear, linears_of
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.errors import CheckpointNotFound, CorruptFile
from tritonforge.formats.safetensors import Array, TensorFolder
from tritonforge.formats.trtllm import FLOAT_TYPES

INPUTS = "x"
OUTPUTS = "y"
_WEIGHTS = "w"
_KINDS = (INPUTS, OUTPUTS, _WEIGHTS)
_SHOWN = 3
# What the families call the head. A model has the module, and a recording its ranges, even where its weights are the
# embedding's and the checkpoint stores none.
_HEADS = ("lm_head", "transformer.output_layer")
_NEAR = 0.8  # names of modules have much in common
_HINT = "record the ranges again, with this model: docs/quantisation.md has a script"


@dataclass(frozen=True, slots=True)
class ActivationRanges:
    """Ranges that were found to be complete and usable.

    Args:
        path: The file.
        values: float32 arrays by name, ``model.layers.0.mlp.up_proj.x``.
    """

    path: Path
    values: Mapping[str, Array]

    def inputs(self, module: str) -> Array:
        """Largest absolute value of each input channel of a module, float32 [in]."""
        return self.values[f"{module}.{INPUTS}"]

    def largest_input(self, modules: Sequence[str]) -> np.float32:
        """Largest absolute input of modules that read the same."""
        return np.float32(max(self.inputs(module).max() for module in modules))

    def largest_output(self, modules: Sequence[str]) -> np.float32:
        """Largest absolute output of modules that are fused into one."""
        return np.float32(max(self.values[f"{module}.{OUTPUTS}"].max() for module in modules))


def read_ranges(path: Path, source: SourceCheckpoint, needed: Iterable[tuple[Linear, str]]) -> ActivationRanges:
    """Read a file of activation ranges for one checkpoint.

    Args:
        path: The file.
        source: The checkpoint that it belongs to.
        needed: Linear layers, and which of their ranges (`INPUTS` or `OUTPUTS`) are used.

    Raises:
        CheckpointNotFound: There is no such file.
        CorruptFile: It is damaged, of another model, incomplete, or has values that are no ranges.
    """
    tensors = _open(path)
    shapes = _shapes(source)
    _check_names(tensors, shapes, source, path)
    names = [f"{module}.{kind}" for linear, kind in needed for module in linear.modules]
    missing = [name for name in names if name not in tensors]
    if missing:
        raise CorruptFile(path, f"lacks {_listed(missing)}", hint=_HINT)
    return ActivationRanges(path, {name: _read(tensors, name, shapes[name], path) for name in dict.fromkeys(names)})


def _open(path: Path) -> TensorFolder:
    try:
        return TensorFolder.open_file(path)
    except CheckpointNotFound as error:
        option, key = WRITTEN["activation_ranges"]
        raise CheckpointNotFound(
            f"{path}: no such file of activation ranges ({option}, {key} in forge.yaml)",
            hint="docs/quantisation.md has a script that records them where the model runs",
        ) from error


def _shapes(source: SourceCheckpoint) -> dict[str, int]:
    """The size of everything that may be in a file: ranges of every module with a matrix."""
    parts = [part for target in source.targets for part in target.sources if len(part.shape) == 2]
    matrices = {part.name.removesuffix(".weight"): part.shape for part in parts}
    if source.config.tied_embeddings:
        matrices |= dict.fromkeys(_HEADS, (source.config.vocab_size, source.config.hidden_size))
    axes = dict(zip(_KINDS, (1, 0, 0), strict=True))
    return {f"{module}.{kind}": shape[axis] for module, shape in matrices.items() for kind, axis in axes.items()}


def _check_names(tensors: TensorFolder, shapes: Mapping[str, int], source: SourceCheckpoint, path: Path) -> None:
    unknown = [name for name in tensors.names() if name not in shapes]
    if unknown:
        known = [f"{module}.{kind}" for linear in linears_of(source) for module in linear.modules for kind in _KINDS]
        near = (get_close_matches(unknown[0], known, n=1, cutoff=_NEAR) or known)[0]
        raise CorruptFile(
            path,
            f"has ranges of what the checkpoint does not have: {_listed(unknown)}; expected names such as {near!r}",
            hint=_HINT,
        )


def _read(tensors: TensorFolder, name: str, size: int, path: Path) -> Array:
    info = tensors.info(name)
    if info.dtype not in FLOAT_TYPES.values():
        raise CorruptFile(path, f"{name} has dtype {info.dtype}; expected F32, F16 or BF16", hint=_HINT)
    if info.shape != (size,):
        raise CorruptFile(
            path, f"{name} has shape {list(info.shape)}; expected [{size}], one for each channel", hint=_HINT
        )
    values = tensors.read(name).astype(np.float32)
    problem = _problem(values)
    if problem:
        raise CorruptFile(path, f"{name} has {problem}; expected the largest absolute values", hint=_HINT)
    return values


def _problem(values: Array) -> str | None:
    """What makes values unusable as ranges."""
    odd, negative = int(np.count_nonzero(~np.isfinite(values))), int(np.count_nonzero(values < 0))
    if odd:
        return f"{odd:,} values that are NaN or infinite"
    if negative:
        return f"{negative:,} negative values"
    return None if values.any() else "nothing but zeros"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
