"""What a family is: how it reads config.json, and which source tensors make up each tensor of the target checkpoint.

Shapes are written with H hidden size, D head size, Nq query heads, Nkv key and value heads, F MLP width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from tritonforge.formats.json_fields import JsonFields
from tritonforge.formats.safetensors import TensorFolder
from tritonforge.formats.trtllm import TrtllmConfig

TENSORRT_LLM = "tensorrt_llm"
OPENVINO = "openvino"
ENGINES = (TENSORRT_LLM, OPENVINO)


class Arrangement(Enum):
    """How the rows of the sources become the rows of the target."""

    CONCATENATE = "the sources one after the other"
    SWAP_HALVES = "[gate ; up] becomes [up ; gate]"
    UNZIP_HEADS = "query, key and value of each head become all queries, all keys, all values"


@dataclass(frozen=True, slots=True)
class SourceTensor:
    """A tensor that the checkpoint must hold.

    Args:
        name: Its name there.
        shape: The shape that config.json implies.
        reason: Where that shape comes from, in words.
    """

    name: str
    shape: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class TargetTensor:
    """A tensor of the TensorRT-LLM checkpoint, and what it is made of.

    Args:
        name: Its name there.
        sources: Tensors whose rows it takes.
        arrangement: In which order it takes them.
    """

    name: str
    sources: tuple[SourceTensor, ...]
    arrangement: Arrangement = Arrangement.CONCATENATE

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape: the rows of all sources, the other dimensions as they are."""
        return (sum(source.shape[0] for source in self.sources), *self.sources[0].shape[1:])


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Everything that a family may decide by: what the files say, never what the folder is called.

    Args:
        folder: The folder, for reading further files in it.
        fields: config.json.
        architecture: First of its ``architectures``.
        weights: The tensors; None when they cannot be read (then the checkpoint is refused anyway).
    """

    folder: Path
    fields: JsonFields
    architecture: str
    weights: TensorFolder | None

    def holds(self, tensor: str) -> bool:
        """Whether there is a tensor of that name."""
        return self.weights is not None and tensor in self.weights


@dataclass(frozen=True, slots=True)
class Reading:
    """What a family makes of the facts.

    Args:
        config: The target's configuration.
        reasons: Why the checkpoint cannot be served at all.
        engine_reasons: Why a single engine cannot serve it, by engine.
    """

    config: TrtllmConfig
    reasons: tuple[str, ...] = ()
    engine_reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Family:
    """A group of checkpoints that share their form.

    Args:
        name: Its name, as `inspect` prints it.
        architectures: The ``architectures`` of config.json that belong to it.
        model_types: The ``model_type`` by which it is found when ``architectures`` is absent, and the architecture
            that is then assumed.
        read: config.json → the target's configuration and the reasons against it.
        tensors: The target's tensors.
    """

    name: str
    architectures: tuple[str, ...]
    model_types: Mapping[str, str]
    read: Callable[[SourceFacts], Reading]
    tensors: Callable[[SourceFacts, TrtllmConfig], tuple[TargetTensor, ...]]


def linear(
    target: str,
    sources: tuple[tuple[str, int], ...],
    columns: int,
    reason: str,
    *,
    bias: bool,
    arrangement: Arrangement = Arrangement.CONCATENATE,
) -> tuple[TargetTensor, ...]:
    """The weight, and where there is one the bias, of a linear layer.

    Args:
        target: Its name in the target, without ``.weight``.
        sources: Name (without ``.weight``) and rows of each source.
        columns: Width of its input.
        reason: Where the shape comes from.
        bias: Whether it has a bias.
        arrangement: Order of the rows.
    """
    weights = tuple(SourceTensor(f"{name}.weight", (rows, columns), reason) for name, rows in sources)
    tensors = (TargetTensor(f"{target}.weight", weights, arrangement),)
    if not bias:
        return tensors
    biases = tuple(SourceTensor(f"{name}.bias", (rows,), reason) for name, rows in sources)
    return (*tensors, TargetTensor(f"{target}.bias", biases, arrangement))


def single(target: str, source: str, shape: tuple[int, ...], reason: str) -> TargetTensor:
    """A target that is one source as it is."""
    return TargetTensor(target, (SourceTensor(source, shape, reason),))
