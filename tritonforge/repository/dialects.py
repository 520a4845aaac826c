"""Which tensors each kind of engine speaks, as far as the gateway must know it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tritonforge.spec.model import ResolvedVersion

TENSORRT_LLM = "tensorrt_llm"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the gateway talks to an engine.

    Args:
        name: One of the gateway's dialects.
        unserved_inputs: Inputs of the gateway that the engine cannot serve: such a request is refused before it
            reaches the engine.
        renamed_inputs: The engine's own name of an input, by the dialect's name of it, where the two differ.
    """

    name: str
    unserved_inputs: tuple[str, ...] = ()
    renamed_inputs: Mapping[str, str] = field(default_factory=dict)


def _openvino(_: ResolvedVersion) -> Dialect:
    return Dialect(TENSORRT_LLM, unserved_inputs=("bad_words",))


def _tensorrt_llm(_: ResolvedVersion) -> Dialect:
    return Dialect(TENSORRT_LLM)


DIALECTS: Mapping[str, Callable[[ResolvedVersion], Dialect]] = {"openvino": _openvino, "tensorrt_llm": _tensorrt_llm}


def dialect_of(version: ResolvedVersion) -> Dialect:
    """The dialect of a version's engine."""
    return DIALECTS[version.engine.kind](version)
