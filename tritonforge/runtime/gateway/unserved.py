"""Inputs of the gateway that an engine cannot serve: refused by the name that the client gave them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..tensors import RequestRejected
from .request import TextRequest
from .serving import ServedVersion

# Whether a request asks for something by an input; a neutral value, which many clients always send, asks for nothing.
_ASKS: Mapping[str, Callable[[TextRequest], bool]] = {
    "bad_words": lambda request: bool(request.bad_words),
    "min_length": lambda request: bool(request.sampling.min_length),
    "random_seed": lambda request: request.sampling.random_seed is not None,
    "repetition_penalty": lambda request: request.sampling.repetition_penalty not in {None, 1.0},
    "presence_penalty": lambda request: bool(request.sampling.presence_penalty),
    "frequency_penalty": lambda request: bool(request.sampling.frequency_penalty),
    "return_log_probs": lambda request: request.return_log_probs,
}


def refuse_unserved(request: TextRequest, version: ServedVersion) -> None:
    """Refuse what the engine would refuse under a name of its own, or would not do.

    Raises:
        RequestRejected: The request asks for something that its version does not serve.
    """
    for name in version.unserved_inputs:
        asks = _ASKS.get(name)
        if asks is not None and asks(request):
            raise RequestRejected(f"{name} is given; engine version {version.number} cannot serve it, expected none")
