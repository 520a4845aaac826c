"""The tensors of NVIDIA's `tensorrtllm` backend, which the embedded engine speaks as well. Pure.

Names and types follow the backend's config.pbtxt of releases 0.7 to 0.19; all carry a batch dimension of 1. Optional
inputs are sent only when they carry something, so that an engine whose config lacks one serves all other requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...tensors import Array
from ..dialect_names import TENSORRT_LLM
from ..engine import EngineCall, Event, Tokens
from ..prompt import Prompt
from ..request import Sampling, TextRequest
from ..serving import ServedVersion
from .base import Reader

NAME = TENSORRT_LLM


def generate_call(request: TextRequest, prompt: Prompt, version: ServedVersion, *, request_id: str) -> EngineCall:
    """The call that generates the answer.

    The engine streams only when its tokens are needed one by one: for a client that streams, or to find stop words.
    """
    # The backend takes one end token; the others are stop words of one token each.
    first_end_id, *more_end_ids = version.end_ids if request.end_id is None else (request.end_id,)
    streams = request.stream or bool(request.stop_words)
    inputs: dict[str, Array] = {
        "input_ids": np.array([prompt.token_ids], dtype=np.int32),
        "input_lengths": _int32(len(prompt.token_ids)),
        "request_output_len": _int32(prompt.max_tokens),
        "end_id": _int32(first_end_id),
        "pad_id": _int32(version.pad_id if request.pad_id is None else request.pad_id),
        "streaming": _flag(on=streams),
        **_sampling_inputs(request.sampling),
    }
    if more_end_ids:
        inputs["stop_words_list"] = word_list([[token_id] for token_id in more_end_ids])
    if request.bad_words:
        inputs["bad_words_list"] = word_list(_bad_words(request.bad_words, version))
    inputs |= {also: inputs[name] for name, also in version.input_aliases.items() if name in inputs}
    outputs = ["output_ids", "sequence_length"]
    if request.return_log_probs:
        inputs["return_log_probs"] = _flag(on=True)
        outputs += ["cum_log_probs", "output_log_probs"]
    return EngineCall(version.engine_model, version.number, request_id, inputs, tuple(outputs), streams=streams)


def stop_call(call: EngineCall) -> EngineCall:
    """The call that stops `call`: the same id, `stop`, and the inputs that no request may lack."""
    inputs = {
        "input_ids": _int32(0),
        "input_lengths": _int32(1),
        "request_output_len": _int32(1),
        "stop": _flag(on=True),
    }
    return EngineCall(call.engine_model, call.engine_version, call.request_id, inputs, ("output_ids",))


def probe_call(call: EngineCall, *, request_id: str) -> EngineCall:
    """A call that any engine in good health answers at once: it stops a request that does not exist."""
    return replace(stop_call(call), request_id=request_id)


def reader() -> Reader:
    """Reads the responses to one call; each stands for itself."""
    return read_tokens


def read_tokens(outputs: Mapping[str, Array]) -> Event | None:
    """New tokens from one response, possibly none; None when it is no answer at all, but only marks the end.

    Args:
        outputs: `output_ids` `[1, beams, n]`, and optionally `sequence_length` `[1, beams]`, `output_log_probs`
            `[1, beams, n]` and `cum_log_probs` `[1, beams]`. Only the first beam is read.
    """
    ids = outputs.get("output_ids")
    if ids is None:
        return None
    if ids.size == 0:
        return Tokens(())
    beam = ids.reshape(-1, ids.shape[-1])[0]
    lengths = outputs.get("sequence_length")
    # A response that is not streamed may be padded to the longest that was possible.
    count = len(beam) if lengths is None or lengths.size == 0 else min(len(beam), int(lengths.ravel()[0]))
    token_ids = tuple(beam[:count].tolist())
    if not token_ids:
        return Tokens(())
    log_probs, cum = outputs.get("output_log_probs"), outputs.get("cum_log_probs")
    return Tokens(
        token_ids=token_ids,
        log_probs=_last_of_first_beam(log_probs, count),
        cum_log_prob=None if cum is None or cum.size == 0 else float(cum.ravel()[0]),
    )


def word_list(words: Sequence[Sequence[int]]) -> Array:
    """Words in the backend's form, `[1, 2, n]`: all ids in a row; below, where each word ends, padded with -1."""
    ids = [token_id for word in words for token_id in word]
    ends = np.cumsum([len(word) for word in words]).tolist()
    width = max(len(ids), 1)
    rows = [ids + [0] * (width - len(ids)), ends + [-1] * (width - len(ends))]
    return np.array([rows], dtype=np.int32)


def _bad_words(words: Sequence[str], version: ServedVersion) -> list[list[int]]:
    # The same word has other tokens at the start of a text than behind a space.
    spellings = [version.tokenizer.encode_word(form) for word in words for form in (word, f" {word}")]
    return [list(ids) for ids in dict.fromkeys(tuple(ids) for ids in spellings if ids)]


def _sampling_inputs(sampling: Sampling) -> dict[str, Array]:
    temperature, top_k, top_p = sampling.temperature, sampling.top_k, sampling.top_p
    if temperature == 0:
        # Engines divide by the temperature; the most likely token is what is meant.
        temperature, top_k, top_p = None, 1, None
    elif temperature is not None and top_k is None and top_p is None:
        top_p = 1.0  # without either the backend stays greedy whatever the temperature
    floats = {
        "temperature": temperature,
        "runtime_top_p": top_p,
        "repetition_penalty": sampling.repetition_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
    }
    integers = {"runtime_top_k": top_k, "min_length": sampling.min_length}
    inputs: dict[str, Array] = {}
    inputs |= {name: np.array([[value]], dtype=np.float32) for name, value in floats.items() if value is not None}
    inputs |= {name: _int32(value) for name, value in integers.items() if value is not None}
    if sampling.random_seed is not None:
        inputs["random_seed"] = np.array([[sampling.random_seed]], dtype=np.uint64)
    return inputs


def _last_of_first_beam(log_probs: Array | None, count: int) -> tuple[float, ...]:
    # The last ones: some releases send the whole sequence's log probabilities with every streamed response.
    if log_probs is None or log_probs.size == 0:
        return ()
    return tuple(log_probs.reshape(-1, log_probs.shape[-1])[0][-count:].tolist())


def _int32(value: int) -> Array:
    return np.array([[value]], dtype=np.int32)


def _flag(*, on: bool) -> Array:
    return np.array([[on]], dtype=np.bool_)
