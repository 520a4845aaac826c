"""How each kind of engine is planned and built: one row per kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tritonforge.artifacts import CheckpointArtifact, EngineArtifact
from tritonforge.errors import BuildError
from tritonforge.events import OnEvent
from tritonforge.pipeline.openvino import build_openvino, plan_openvino
from tritonforge.pipeline.recipe import Ingredients, Recipe


class Build(Protocol):
    """Compiles an engine."""

    def __call__(
        self, recipe: Recipe, checkpoint: CheckpointArtifact, out: Path, *, log: Path, on_event: OnEvent
    ) -> EngineArtifact:
        """Make the engine in `out`; what a program that is run for it writes goes to `log`."""


@dataclass(frozen=True, slots=True)
class EngineKind:
    """One kind.

    Args:
        plan: What is to be done for a version, refused as far as that can be known before it is done. Writes nothing.
        build: Compiles the engine; None for a kind that serves the checkpoint as it is.
    """

    plan: Callable[[Ingredients], Recipe]
    build: Build | None


KINDS: Mapping[str, EngineKind] = {"openvino": EngineKind(plan_openvino, build_openvino)}


def kind_of(name: str, *, subject: str) -> EngineKind:
    """The kind of that name.

    Args:
        name: ``kind`` of an engine.
        subject: The version, for the message.

    Raises:
        BuildError: This release does not build engines of that kind.
    """
    kind = KINDS.get(name)
    if kind is None:
        raise BuildError(
            f"{subject}: engine kind {name!r} is not built by this release; expected one of {', '.join(KINDS)}"
        )
    return kind
