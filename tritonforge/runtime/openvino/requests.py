"""The input tensors of one engine request → a `Generation` that the pipeline can take without fail. Pure.

Everything is checked here, because an exception inside the pipeline's step would take all running requests with it.
The tensors are those of the `tensorrtllm` backend; what cannot be served is refused by name, never ignored.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..tensors import Array, Inputs, RequestRejected
from .protocol import Generation
from .settings import EngineSettings

LOWEST_TEMPERATURE = 1e-4  # below it, dividing the logits by it leaves only the most probable token, or overflows
PENALTY_LIMIT = 2.0  # the library's own limit for presence and frequency penalty

# Inputs of the tensorrtllm backend that this engine does not serve, and the one value that asks for nothing.
NEUTRAL_VALUES: Mapping[str, float | bool] = {
    "beam_width": 1,
    "num_return_sequences": 1,
    "exclude_input_in_output": True,
    "return_context_logits": False,
    "return_generation_logits": False,
    "return_perf_metrics": False,
    "beam_search_diversity_rate": 0.0,
}
# Inputs that this engine cannot serve with any value.
REFUSED = (
    "embedding_bias",
    "prompt_embedding_table",
    "prompt_vocab_size",
    "draft_input_ids",
    "draft_logits",
    "lora_task_id",
    "lora_weights",
    "lora_config",
    "runtime_top_p_min",
    "runtime_top_p_decay",
    "runtime_top_p_reset_ids",
)


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One request as it came.

    Args:
        generation: What to compute.
        streaming: A response for every few tokens; otherwise one response with all of them.
    """

    generation: Generation
    streaming: bool


def is_stop(inputs: Inputs) -> bool:
    """Whether the request only asks to cancel the running request of the same id. Raises RequestRejected."""
    return inputs.flag("stop") is True


def read_request(inputs: Inputs, settings: EngineSettings) -> EngineRequest:
    """Check the inputs of one request.

    Raises:
        RequestRejected: An input is missing, wrong, beyond a limit or not served; the message names it.
    """
    _refuse_unserved(inputs)
    input_ids = _input_ids(inputs, settings)
    max_new_tokens = _output_length(inputs, len(input_ids), settings)
    min_new_tokens = inputs.integer("min_length", minimum=0) or 0
    if min_new_tokens > max_new_tokens:
        raise RequestRejected(
            f"min_length is {min_new_tokens}; expected at most request_output_len, which is {max_new_tokens}"
        )
    stop_ids, stop_sequences = _stops(inputs, settings.vocab_size)
    temperature, top_k, top_p = _sampling(inputs)
    greedy = temperature is None
    generation = Generation(
        input_ids=input_ids,
        max_new_tokens=max_new_tokens,
        min_new_tokens=min_new_tokens,
        stop_ids=stop_ids,
        stop_sequences=stop_sequences,
        greedy=greedy,
        temperature=1.0 if temperature is None else temperature,
        top_k=top_k,
        top_p=top_p,
        seed=_seed(inputs),
        repetition_penalty=_repetition_penalty(inputs),
        presence_penalty=_penalty(inputs, "presence_penalty"),
        frequency_penalty=_penalty(inputs, "frequency_penalty"),
        log_probs=_log_probs(inputs, settings),
    )
    return EngineRequest(generation, streaming=inputs.flag("streaming") is True)


def _refuse_unserved(inputs: Inputs) -> None:
    for name, neutral in NEUTRAL_VALUES.items():
        value = inputs.flag(name) if isinstance(neutral, bool) else inputs.number(name)
        if value is not None and value != neutral:
            shown = value if isinstance(value, bool) else f"{value:g}"
            raise RequestRejected(f"{name} is {shown}; the embedded engine serves {neutral} only")
    for name in REFUSED:
        if name in inputs.arrays and inputs.arrays[name].size:
            raise RequestRejected(f"{name} is given; the embedded engine does not serve it")
    if _words(inputs, "bad_words_list"):
        raise RequestRejected("bad_words_list is given; the embedded engine does not serve it")


def _input_ids(inputs: Inputs, settings: EngineSettings) -> tuple[int, ...]:
    ids = inputs.integers("input_ids")
    length = inputs.integer("input_lengths", minimum=0)
    if ids is None or length == 0:
        raise RequestRejected("input_ids is empty; expected at least 1 token id")
    if length is not None and length > len(ids):
        raise RequestRejected(f"input_lengths is {length}; expected at most the {len(ids)} ids in input_ids")
    ids = ids[:length]  # what follows is padding
    if len(ids) > settings.max_input_len:
        raise RequestRejected(
            f"input_ids has {len(ids)} tokens; expected at most {settings.max_input_len} (max_input_len)"
        )
    for position, token in enumerate(ids):
        if not 0 <= token < settings.vocab_size:
            raise RequestRejected(
                f"input_ids holds {token} at position {position}; expected 0 to {settings.vocab_size - 1} (vocabulary)"
            )
    return ids


def _output_length(inputs: Inputs, input_tokens: int, settings: EngineSettings) -> int:
    asked = inputs.integer("request_output_len", minimum=1)
    if asked is None:
        raise RequestRejected("request_output_len is missing; expected the number of tokens to generate")
    if input_tokens + asked > settings.max_seq_len:
        raise RequestRejected(
            f"request_output_len is {asked}; expected at most {settings.max_seq_len - input_tokens}: "
            f"{input_tokens} prompt tokens and the answer share {settings.max_seq_len} (max_seq_len)"
        )
    return asked


def _stops(inputs: Inputs, vocab_size: int) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Single ids and sequences that end the answer. Ids outside the vocabulary can never come, so they are left out."""
    words = list(_words(inputs, "stop_words_list"))
    end_id = inputs.integer("end_id", minimum=-1)
    if end_id is not None and end_id >= 0:
        words.insert(0, (end_id,))
    possible = [word for word in words if all(0 <= token < vocab_size for token in word)]
    singles = dict.fromkeys(word[0] for word in possible if len(word) == 1)
    return tuple(singles), tuple(word for word in possible if len(word) > 1)


def _words(inputs: Inputs, name: str) -> tuple[tuple[int, ...], ...]:
    """Words in the backend's layout, [2, n] or [1, 2, n]: all ids in a row, and in the second row where each word ends.

    Ends beyond the last word are -1.
    """
    array = inputs.arrays.get(name)
    if array is None or array.size == 0:
        return ()
    pair = array.reshape(array.shape[-2:]) if array.ndim > 1 and array.size == np.prod(array.shape[-2:]) else array
    if pair.ndim != 2 or pair.shape[0] != 2 or pair.dtype.kind not in "iu":
        raise RequestRejected(
            f"{name} has shape {list(array.shape)} and type {array.dtype}; expected integers of shape [2, n]: "
            f"ids, and the end of each word"
        )
    return _cut(name, pair)


def _cut(name: str, pair: Array) -> tuple[tuple[int, ...], ...]:
    ids, ends = pair.tolist()
    words = []
    start = 0
    for end in ends:
        if end < 0:
            break
        if not start < end <= len(ids):
            raise RequestRejected(
                f"{name} has a word that ends at {end}; expected {start + 1} to {len(ids)} (ends grow, within the ids)"
            )
        words.append(tuple(ids[start:end]))
        start = end
    return tuple(words)


def _sampling(inputs: Inputs) -> tuple[float | None, int | None, float]:
    """Temperature (None: greedy), top k and top p.

    As in TensorRT-LLM, top k 0 and top p 0 mean "not used", and with nothing to sample by the answer is greedy.
    """
    temperature = inputs.number("temperature", minimum=0.0)
    top_k = inputs.integer("runtime_top_k", minimum=0)
    top_p = inputs.number("runtime_top_p", minimum=0.0, maximum=1.0)
    nothing_given = temperature is None and not top_k and not top_p
    if nothing_given or top_k == 1 or (top_p == 0.0 and not top_k):
        return None, None, 1.0
    if temperature is not None and temperature < LOWEST_TEMPERATURE:
        return None, None, 1.0
    return 1.0 if temperature is None else temperature, top_k or None, top_p or 1.0


def _seed(inputs: Inputs) -> int:
    """The given seed, or a fresh one: without a seed two answers may differ."""
    seed = inputs.integer("random_seed", minimum=0)
    return secrets.randbits(32) if seed is None else seed


def _repetition_penalty(inputs: Inputs) -> float:
    penalty = inputs.number("repetition_penalty")
    if penalty is not None and penalty <= 0:
        raise RequestRejected(f"repetition_penalty is {penalty:g}; expected more than 0 (1 is none)")
    return 1.0 if penalty is None else penalty


def _penalty(inputs: Inputs, name: str) -> float:
    return inputs.number(name, minimum=-PENALTY_LIMIT, maximum=PENALTY_LIMIT) or 0.0


def _log_probs(inputs: Inputs, settings: EngineSettings) -> bool:
    wanted = inputs.flag("return_log_probs") is True
    if wanted and not settings.fused_attention:
        raise RequestRejected(
            "return_log_probs is true; an engine built with context_fmha: false gives no log probabilities"
        )
    return wanted
