"""What the gateway needs of a dialect. A module with these names is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from ...tensors import Array
from ..engine import EngineCall, Event
from ..prompt import Prompt
from ..request import TextRequest
from ..serving import ServedVersion

Reader = Callable[[Mapping[str, Array]], Event | None]
"""Turns the output tensors of one response into an event; None when the response only marks the end."""


class Dialect(Protocol):
    """One way of speaking to an engine. Pure."""

    @property
    def NAME(self) -> str:  # noqa: N802 - modules have constants
        """As serving.json has it."""

    def generate_call(
        self, request: TextRequest, prompt: Prompt, version: ServedVersion, *, request_id: str
    ) -> EngineCall:
        """The call that generates the answer.

        Raises:
            RequestRejected: The engine would refuse a value in words of its own.
        """

    def stop_call(self, call: EngineCall) -> EngineCall | None:
        """The call that stops `call`; None when the engine stops once its caller hangs up."""

    def probe_call(self, call: EngineCall, *, request_id: str) -> EngineCall:
        """A call of the same engine that is answered at once, if only with an error, while its process is there."""

    def reader(self) -> Reader:
        """A reader for the responses to one call."""
