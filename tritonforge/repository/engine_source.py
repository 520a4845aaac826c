"""What the context of an engine's templates is made from, whatever the kind. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tritonforge.artifacts import EngineArtifact
from tritonforge.spec.model import ResolvedVersion


class NamedContext(Protocol):
    """A dataclass whose fields are the variables of a kind's templates."""

    @property
    def name(self) -> str:
        """Name of the Triton model, the same as its folder."""


@dataclass(frozen=True, slots=True)
class EngineSource:
    """What a context builder may look at.

    Args:
        version: What the spec asks for.
        engine: What was compiled; the files of a kind that compiles nothing are empty.
        server_folder: Absolute path of the version folder as the server sees it.
        with_histograms: The target server knows `model_metrics` (Triton 2.52 and later).
    """

    version: ResolvedVersion
    engine: EngineArtifact
    server_folder: str
    with_histograms: bool
