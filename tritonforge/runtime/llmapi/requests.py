"""A request's tensors to one checked value. Pure.

Names and types are upstream's of release 0.19 (read in tensorrtllm_backend v0.19.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..tensors import Inputs, RequestRejected

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Generation:
    """What is to be generated, and what is to be told of it.

    Args:
        prompt: Text; the engine tokenises it.
        sampling: Arguments of the library's SamplingParams.
        streaming: A response for each new piece of text, instead of one.
        returns: Outputs to send beside the text.
    """

    prompt: str
    sampling: Mapping[str, Any]
    streaming: bool
    returns: tuple[str, ...]


def read_generation(inputs: Inputs) -> Generation:
    """Check every input and gather them.

    Raises:
        RequestRejected: The first input that is wrong, with its value and what was expected.
    """
    prompt = inputs.text("text_input")
    if not prompt:
        raise RequestRejected("text_input is missing or empty; expected one prompt")
    beams = inputs.integer("sampling_param_beam_width")
    if beams is not None and beams != 1:
        raise RequestRejected(f"sampling_param_beam_width is {beams}; expected 1, beam search is not served")
    sampling = {
        "max_tokens": inputs.integer("sampling_param_max_tokens", minimum=1, maximum=_INT32_MAX),
        "temperature": inputs.number("sampling_param_temperature", minimum=0.0),
        "top_k": inputs.integer("sampling_param_top_k", minimum=0),
        "top_p": inputs.number("sampling_param_top_p", minimum=0.0, maximum=1.0),
        "frequency_penalty": inputs.number("sampling_param_frequency_penalty"),
        "presence_penalty": inputs.number("sampling_param_presence_penalty"),
        "seed": inputs.integer("sampling_param_seed", minimum=0, maximum=2**64 - 1),
        "exclude_input_from_output": inputs.flag("sampling_param_exclude_input_from_output"),
        "stop": [word for word in inputs.texts("sampling_param_stop") if word] or None,
    }
    wanted = ("finish_reason", "stop_reason", "cumulative_logprob")
    return Generation(
        prompt=prompt,
        sampling={name: value for name, value in sampling.items() if value is not None},
        streaming=inputs.flag("streaming") or False,
        returns=tuple(name for name in wanted if inputs.flag(f"return_{name}")),
    )
