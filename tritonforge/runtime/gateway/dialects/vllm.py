"""The tensors of Triton's `vllm` backend: text in, sampling parameters as JSON, text out. Pure.

Read in the vllm_backend repository (src/model.py and src/utils/request.py of 2025 and 2026): names and types, no batch
dimension, the new text alone in a streamed response, the prompt before the answer unless it is asked away, and that a
caller who hangs up ends the request. The gateway's own stop words stay in force, so nothing rests on the engine's.
The ranges of sampling values were read in vLLM's own sampling_params.py (a version of 2026). Inferred, not run: that
the chosen token comes first in `logprobs`.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...tensors import Array, RequestRejected
from ..dialect_names import VLLM
from ..engine import EngineCall, Event, Failure, Text
from ..prompt import Prompt
from ..request import TextRequest
from ..serving import ServedVersion
from .base import Reader
from .sampling import is_greedy, settled
from .text_tensors import first_number, flag, text, words

NAME = VLLM
_NO_END_ID = -1
# Ends of the ranges that vLLM takes; it names the value in an error that its Triton backend keeps to itself.
_RANGES = {"temperature": (0, 2), "presence_penalty": (-2, 2), "frequency_penalty": (-2, 2)}
_LARGEST_SEED = 2**63 - 1
_REASONS = ("stop", "length")
# The backend answers a request for an adapter that it does not have before its engine hears of it.
_ABSENT_ADAPTER = "tritonforge-is-the-engine-there"


def generate_call(request: TextRequest, prompt: Prompt, version: ServedVersion, *, request_id: str) -> EngineCall:
    """The call that generates the answer. Raises RequestRejected for a value outside of what vLLM takes."""
    inputs = {
        "text_input": text(prompt.text),
        "stream": flag(on=request.stream),
        "sampling_parameters": text(json.dumps(sampling_parameters(request, prompt, version), ensure_ascii=False)),
        "return_finish_reason": flag(on=True),
        "return_num_input_tokens": flag(on=True),
        "return_num_output_tokens": flag(on=True),
        "exclude_input_in_output": flag(on=True),
    }
    outputs = ["text_output", "finish_reason", "num_input_tokens", "num_output_tokens"]
    if request.return_log_probs:
        inputs |= {"return_logprobs": flag(on=True), "return_cumulative_logprob": flag(on=True)}
        outputs += ["logprobs", "cumulative_logprob"]
    return EngineCall(
        version.engine_model, version.number, request_id, inputs, tuple(outputs), dialect=NAME, streams=request.stream
    )


def sampling_parameters(request: TextRequest, prompt: Prompt, version: ServedVersion) -> dict[str, Any]:
    """The SamplingParams of vLLM for a request, without what is left at its default.

    Raises:
        RequestRejected: A value is outside of what vLLM takes; its backend would not say which.
    """
    sampling = settled(request.sampling)
    _check_ranges(request, version)
    given = {
        "max_tokens": prompt.max_tokens,
        "min_tokens": sampling.min_length,
        # vLLM's own default is a temperature of 1.
        "temperature": 0.0 if is_greedy(sampling) else 1.0 if sampling.temperature is None else sampling.temperature,
        "top_k": None if is_greedy(sampling) else sampling.top_k,
        "top_p": sampling.top_p,
        "repetition_penalty": sampling.repetition_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "seed": sampling.random_seed,
        "stop": list(request.stop_words) or None,
        # So that the gateway sees the word itself, and cuts there whatever the engine has sent before.
        "include_stop_str_in_output": True if request.stop_words else None,
        "bad_words": list(request.bad_words) or None,
        "logprobs": 0 if request.return_log_probs else None,  # the chosen token's alone
        **_end(request, version),
    }
    return {name: value for name, value in given.items() if value is not None}


def stop_call(call: EngineCall) -> EngineCall | None:  # noqa: ARG001 - a dialect's signature
    """None: the backend stops a request whose caller has hung up."""
    return None


def probe_call(call: EngineCall, *, request_id: str) -> EngineCall:
    """A request for an adapter that is not there."""
    inputs = {
        "text_input": text("-"),
        "stream": flag(on=False),
        "sampling_parameters": text(json.dumps({"lora_name": _ABSENT_ADAPTER, "max_tokens": 1})),
    }
    return EngineCall(
        call.engine_model, call.engine_version, request_id, inputs, ("text_output",), dialect=NAME, streams=False
    )


def reader() -> Reader:
    """Reads the responses to one call."""
    return _Reader().read


class _Reader:
    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self, outputs: Mapping[str, Array]) -> Event | None:
        texts = words(outputs.get("text_output"))
        if not texts:
            return None
        reason = _finish_reason(outputs)
        if reason is not None and reason not in _REASONS:
            return Failure(f"it gave the request up: finish_reason is {reason!r}")
        tokens, prompt_tokens = (first_number(outputs.get(name)) for name in ("num_output_tokens", "num_input_tokens"))
        cumulative = first_number(outputs.get("cumulative_logprob"))
        return Text(
            text=self._utf8.decode(texts[0], final=reason is not None),
            tokens=None if tokens is None else int(tokens),
            prompt_tokens=None if prompt_tokens is None else int(prompt_tokens),
            finish_reason=reason,
            log_probs=_log_probs(outputs),
            cum_log_prob=None if cumulative is None or np.isnan(cumulative) else cumulative,
        )


def _finish_reason(outputs: Mapping[str, Array]) -> str | None:
    found = words(outputs.get("finish_reason"))
    reason = found[0].decode("utf-8", "replace") if found else ""
    return None if reason in {"", "None"} else reason


def _log_probs(outputs: Mapping[str, Array]) -> tuple[float, ...]:
    found = words(outputs.get("logprobs"))
    tokens = json.loads(found[0]) if found else None
    return tuple(float(next(iter(token.values()))["logprob"]) for token in tokens or () if token)


def _end(request: TextRequest, version: ServedVersion) -> dict[str, Any]:
    if request.end_id is None:
        return {"stop_token_ids": list(version.end_ids)}
    # Without ignore_eos the checkpoint's own end tokens would stay in force.
    ids = [] if request.end_id == _NO_END_ID else [request.end_id]
    return {"ignore_eos": True, "stop_token_ids": ids or None}


def _check_ranges(request: TextRequest, version: ServedVersion) -> None:
    sampling = request.sampling
    for name, (least, most) in _RANGES.items():
        value = getattr(sampling, name)
        if value is not None and not least <= value <= most:
            raise RequestRejected(f"{name} is {value:g}; engine version {version.number} takes {least} to {most}")
    seed = sampling.random_seed
    if seed is not None and seed > _LARGEST_SEED:
        raise RequestRejected(f"random_seed is {seed}; engine version {version.number} takes 0 to {_LARGEST_SEED}")
