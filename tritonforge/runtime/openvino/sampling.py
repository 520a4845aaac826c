"""A checked request as OpenVINO GenAI's GenerationConfig."""

from __future__ import annotations

import openvino_genai

from .protocol import Generation


def generation_config(generation: Generation) -> openvino_genai.GenerationConfig:
    """The library's form of a request. It knows stop ids; stop sequences are searched for in stops.py."""
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
