"""Which tensors each kind of engine speaks, as far as the gateway must know it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tritonforge.releases.backend import backend_line
from tritonforge.releases.table import find_release
from tritonforge.spec.model import ResolvedVersion
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

TENSORRT_LLM, VLLM, LLMAPI = "tensorrt_llm", "vllm", "llmapi"
# Optional inputs of the gateway, and the input of the `tensorrtllm` backend that carries each: a line may lack it.
CARRIERS: Mapping[str, str] = {
    "temperature": "temperature",
    "top_k": "runtime_top_k",
    "top_p": "runtime_top_p",
    "repetition_penalty": "repetition_penalty",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "random_seed": "random_seed",
    "min_length": "min_length",
    "bad_words": "bad_words_list",
    "return_log_probs": "return_log_probs",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the gateway talks to an engine.

    Args:
        name: One of the gateway's dialects.
        unserved_inputs: Inputs of the gateway that the engine cannot serve: such a request is refused before it
            reaches the engine.
        input_aliases: Further names under which the value of an input is sent, by the input's name: for engines of
            which it is not known by which of the two they read it. An engine passes over a name that it does not know.
    """

    name: str
    unserved_inputs: tuple[str, ...] = ()
    input_aliases: Mapping[str, str] = field(default_factory=dict)


def _openvino(_: ResolvedVersion) -> Dialect:
    return Dialect(TENSORRT_LLM, unserved_inputs=("bad_words",))


def _tensorrt_llm(version: ResolvedVersion) -> Dialect:
    assert isinstance(version.engine, TensorRtLlmEngineSpec)  # the kind chose this function
    line = backend_line(find_release(version.engine.release))
    unserved = tuple(name for name, carrier in CARRIERS.items() if not line.has_input(carrier))
    return Dialect(TENSORRT_LLM, unserved_inputs=unserved, input_aliases=line.aliases)


def _vllm(_: ResolvedVersion) -> Dialect:
    return Dialect(VLLM)


def _llmapi(_: ResolvedVersion) -> Dialect:
    # Upstream's tensors have no place for them, and of log probabilities only for their sum.
    return Dialect(LLMAPI, unserved_inputs=("repetition_penalty", "min_length", "bad_words", "return_log_probs"))


DIALECTS: Mapping[str, Callable[[ResolvedVersion], Dialect]] = {
    "openvino": _openvino,
    "tensorrt_llm": _tensorrt_llm,
    "vllm": _vllm,
    "llmapi": _llmapi,
}


def dialect_of(version: ResolvedVersion) -> Dialect:
    """The dialect of a version's engine."""
    return DIALECTS[version.engine.kind](version)
