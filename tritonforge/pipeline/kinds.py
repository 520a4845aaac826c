"""How each kind of engine is planned and made: one row per kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tritonforge.artifacts import CheckpointArtifact, EngineArtifact, TokenizerArtifact
from tritonforge.engine.tensorrt_llm.command import BuildCommand
from tritonforge.events import OnEvent
from tritonforge.pipeline.as_it_is import gather_as_it_is, plan_as_it_is
from tritonforge.pipeline.openvino import build_openvino, plan_openvino
from tritonforge.pipeline.recipe import Ingredients, Recipe
from tritonforge.pipeline.tensorrt_llm import (
    build_tensorrt_llm,
    commands_tensorrt_llm,
    plan_tensorrt_llm,
    prepare_tensorrt_llm,
)
from tritonforge.spec.model import ResolvedVersion


class Build(Protocol):
    """Compiles an engine."""

    def __call__(
        self, recipe: Recipe, checkpoint: CheckpointArtifact, out: Path, *, log: Path, on_event: OnEvent
    ) -> EngineArtifact:
        """Make the engine in `out`; what a program that is run for it writes goes to `log`."""


class Gather(Protocol):
    """Takes a checkpoint along as it is."""

    def __call__(self, recipe: Recipe, tokenizer: TokenizerArtifact, out: Path, *, on_event: OnEvent) -> EngineArtifact:
        """Put its files into `out`."""


class Commands(Protocol):
    """The programs that compiling an engine runs."""

    def __call__(self, recipe: Recipe, *, checkpoint: Path, out: Path) -> tuple[BuildCommand, ...]:
        """Each with its arguments, for a TensorRT-LLM checkpoint and a folder for the engine. Runs none."""


class Prepare(Protocol):
    """Looks whether what compiles an engine is there."""

    def __call__(self, version: ResolvedVersion, *, pull: bool, on_event: OnEvent) -> None:
        """Refuse what compiling would refuse for want of a program or an image, or download the image when told to."""


@dataclass(frozen=True, slots=True)
class EngineKind:
    """One kind, which is compiled, or takes the checkpoint as it is.

    Args:
        plan: What is to be done for a version, refused as far as that can be known before it is done. Writes nothing.
        build: Compiles the engine; None for a kind that is not compiled.
        gather: Takes the checkpoint along; None for a kind that is compiled.
        commands: The programs that compiling runs; None for a kind that is made in this process.
        prepare: Looks whether those are there; None for a kind that is made in this process.
    """

    plan: Callable[[Ingredients], Recipe]
    build: Build | None = None
    gather: Gather | None = None
    commands: Commands | None = None
    prepare: Prepare | None = None


KINDS: Mapping[str, EngineKind] = {
    "openvino": EngineKind(plan_openvino, build=build_openvino),
    "tensorrt_llm": EngineKind(
        plan_tensorrt_llm,
        build=build_tensorrt_llm,
        commands=commands_tensorrt_llm,
        prepare=prepare_tensorrt_llm,
    ),
    "vllm": EngineKind(plan_as_it_is, gather=gather_as_it_is),
    "llmapi": EngineKind(plan_as_it_is, gather=gather_as_it_is),
}
