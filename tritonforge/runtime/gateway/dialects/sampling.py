"""What a request's sampling means, whatever the engine's own defaults are. Pure."""

from __future__ import annotations

from dataclasses import replace

from ..request import Sampling


def settled(sampling: Sampling) -> Sampling:
    """The same sampling, spelled so that every engine understands it alike.

    Without temperature, top_k and top_p the answer is greedy, as with a temperature of 0: `top_k` is 1 then, and the
    other two are None. A temperature alone samples from the whole distribution.
    """
    temperature, top_k, top_p = sampling.temperature, sampling.top_k, sampling.top_p
    if temperature == 0 or (temperature is None and top_k is None and top_p is None):
        return replace(sampling, temperature=None, top_k=1, top_p=None)
    if temperature is not None and top_k is None and top_p is None:
        return replace(sampling, top_p=1.0)
    return sampling


def is_greedy(sampling: Sampling) -> bool:
    """Whether settled sampling always takes the likeliest token."""
    return sampling.top_k == 1
