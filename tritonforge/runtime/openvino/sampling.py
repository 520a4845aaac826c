"""A checked request as OpenVINO GenAI's GenerationConfig, and the search for stop sequences."""

from __future__ import annotations

from collections.abc import Sequence

import openvino_genai

from .protocol import Generation


def generation_config(generation: Generation) -> openvino_genai.GenerationConfig:
    """The library's form of a request. It knows stop ids; stop sequences are searched by `end_of_stop`."""
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = generation.max_new_tokens
    if generation.stop_ids:
        config.set_eos_token_id(generation.stop_ids[0])
        config.stop_token_ids = set(generation.stop_ids)
        config.min_new_tokens = generation.min_new_tokens
    else:
        config.set_eos_token_id(0)  # the library demands one; it is not looked at
        config.ignore_eos = True
    config.repetition_penalty = generation.repetition_penalty
    config.presence_penalty = generation.presence_penalty
    config.frequency_penalty = generation.frequency_penalty
    config.logprobs = int(generation.log_probs)
    config.do_sample = not generation.greedy
    if not generation.greedy:
        config.temperature = generation.temperature
        config.top_p = generation.top_p
        config.rng_seed = generation.seed
        if generation.top_k is not None:
            config.top_k = generation.top_k
    config.validate()
    return config


def end_of_stop(answer: Sequence[int], new_tokens: int, generation: Generation) -> int | None:
    """Where the answer ends because a stop sequence was completed by one of its last `new_tokens` tokens. Pure.

    Returns:
        Number of tokens up to and with the sequence, or None when there is none.
    """
    first_end = max(len(answer) - new_tokens + 1, generation.min_new_tokens)
    for end in range(first_end, len(answer) + 1):
        for sequence in generation.stop_sequences:
            if len(sequence) <= end and list(answer[end - len(sequence) : end]) == list(sequence):
                return end
    return None
