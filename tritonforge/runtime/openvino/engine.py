"""What the worker asks of an engine, and what both kinds of engine have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from .protocol import Generation, Update
from .settings import EngineSettings

EXACT_PRECISIONS = {"float32", "float16"}  # weights whose answers are to equal those of the source model

Exchange: TypeAlias = Callable[[Sequence[Update]], None]
"""Sends updates and takes new commands, which call `submit` and `cancel` of the engine before it returns."""


class Engine(Protocol):
    """Computes the tokens of many requests."""

    @property
    def busy(self) -> bool:
        """Whether there is something to compute or to report."""
        ...

    def submit(self, key: int, generation: Generation) -> None:
        """Take a request; it starts when there is room."""
        ...

    def cancel(self, key: int) -> None:
        """Stop a request; it ends with finish ``cancelled``. Unknown keys are ignored."""
        ...

    def step(self, exchange: Exchange) -> None:
        """Compute for a while, calling `exchange` at least once. An exception leaves the engine unusable."""
        ...


def device_properties(settings: EngineSettings) -> dict[str, object]:
    """Properties of the CPU device that both kinds use."""
    properties: dict[str, object] = {"KV_CACHE_PRECISION": settings.kv_cache_precision}
    if settings.precision in EXACT_PRECISIONS:
        properties["INFERENCE_PRECISION_HINT"] = "f32"  # some CPUs would compute in bfloat16 otherwise
    if settings.num_threads is not None:
        properties["INFERENCE_NUM_THREADS"] = settings.num_threads
    return properties
