"""The tensors of upstream's Triton model on TensorRT-LLM's LLM API: text in, one tensor per sampling parameter. Pure.

Read in tensorrtllm_backend v0.19.0 (all_models/llmapi) and in later versions of NVIDIA/TensorRT-LLM (triton_backend):
names and types, no batch dimension, and that every streamed response carries the whole text so far, never the prompt.
Our own model for this kind speaks the same, and stops when its caller hangs up. The engine counts no tokens, so the
gateway counts those of the answer's text with the checkpoint's tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...tensors import Array, RequestRejected
from ..dialect_names import LLMAPI
from ..engine import EngineCall, Event, Failure, Text
from ..prompt import Prompt
from ..request import TextRequest
from ..serving import ServedVersion
from .base import Reader
from .sampling import settled
from .text_tensors import flag, number, text, texts, words

NAME = LLMAPI
_REASONS = ("stop", "length")
_CUT_CHARACTER = "\ufffd"


def generate_call(request: TextRequest, prompt: Prompt, version: ServedVersion, *, request_id: str) -> EngineCall:
    """The call that generates the answer. Raises RequestRejected for an end token that the engine cannot be told."""
    _check_end(request, version)
    inputs = {
        "text_input": text(prompt.text),
        "streaming": flag(on=request.stream),
        "sampling_param_max_tokens": number(prompt.max_tokens, np.int32),
        "sampling_param_exclude_input_from_output": flag(on=True),
        "return_finish_reason": flag(on=True),
        **_sampling_inputs(request),
    }
    if request.stop_words:
        inputs["sampling_param_stop"] = texts(request.stop_words)
    outputs = ("text_output", "finish_reason")
    return EngineCall(
        version.engine_model, version.number, request_id, inputs, outputs, dialect=NAME, streams=request.stream
    )


def stop_call(call: EngineCall) -> EngineCall | None:  # noqa: ARG001 - a dialect's signature
    """None: the model stops a request whose caller has hung up."""
    return None


def probe_call(call: EngineCall, *, request_id: str) -> EngineCall:
    """A request without a prompt, which the model refuses before its engine hears of it."""
    inputs = {"text_input": texts(())}
    return EngineCall(
        call.engine_model, call.engine_version, request_id, inputs, ("text_output",), dialect=NAME, streams=False
    )


def reader() -> Reader:
    """Reads the responses to one call."""
    return _Reader().read


class _Reader:
    """Finds what is new in texts that each repeat all that came before."""

    def __init__(self) -> None:
        self._seen = ""
        self._repeats = True

    def read(self, outputs: Mapping[str, Array]) -> Event | None:
        found = words(outputs.get("text_output"))
        if not found:
            return None
        reasons = words(outputs.get("finish_reason"))
        reason = reasons[0].decode("utf-8", "replace") if reasons else ""
        if reason not in {"", "None", *_REASONS}:
            return Failure(f"it gave the request up: finish_reason is {reason!r}")
        ended = reason in _REASONS
        new, retracted = self._new(found[0].decode("utf-8", "replace"), ended=ended)
        return Text(new, finish_reason=reason if ended else None, retracted=retracted)

    def _new(self, whole: str, *, ended: bool) -> tuple[str, int]:
        """What is new in a text, and how many characters before it are taken back."""
        # A character whose last bytes are still to come may be shown as a mark that the next response takes back.
        shown = whole if ended else whole.rstrip(_CUT_CHARACTER)
        if ended and self._repeats and self._seen.startswith(shown):
            return "", len(self._seen) - len(shown)  # without the start of a stop word
        if self._repeats and not shown.startswith(self._seen):
            self._repeats = False  # an engine that sends only what is new
        if not self._repeats:
            return whole, 0
        new, self._seen = shown[len(self._seen) :], shown
        return new, 0


def _sampling_inputs(request: TextRequest) -> dict[str, Array]:
    sampling = settled(request.sampling)
    floats = {
        "sampling_param_temperature": sampling.temperature,
        "sampling_param_top_p": sampling.top_p,
        "sampling_param_presence_penalty": sampling.presence_penalty,
        "sampling_param_frequency_penalty": sampling.frequency_penalty,
    }
    inputs = {name: number(value, np.float32) for name, value in floats.items() if value is not None}
    if sampling.top_k is not None:
        inputs["sampling_param_top_k"] = number(sampling.top_k, np.int32)
    if sampling.random_seed is not None:
        inputs["sampling_param_seed"] = np.array([sampling.random_seed], dtype=np.uint64)
    return inputs


def _check_end(request: TextRequest, version: ServedVersion) -> None:
    if request.end_id is not None and request.end_id not in version.end_ids:
        own = ", ".join(str(token_id) for token_id in version.end_ids)
        raise RequestRejected(
            f"end_id is {request.end_id}; engine version {version.number} ends at the checkpoint's own: {own}"
        )
