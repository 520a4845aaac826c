"""The seam between the gateway and whatever runs an engine: a call goes in, events come back through a mailbox."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..tensors import Array
from .dialect_names import TENSORRT_LLM


def new_request_id() -> str:
    """An id for a call that no other call has.

    It begins with a letter: the `tensorrtllm` backend of the time of 0.9 reads an id as a number as far as its
    beginning is one, so that `3f…` and `3a…` would be one request, and the second be refused.
    """
    return f"r{uuid.uuid4().hex}"


@dataclass(frozen=True, slots=True)
class EngineCall:
    """One request to an engine's Triton model.

    Args:
        engine_model: Name of the model.
        engine_version: Its version.
        request_id: Unique; the engine knows the request by it.
        inputs: Tensors by name, with the batch dimension.
        outputs: Names of the wanted tensors.
        dialect: The dialect that it is spoken in.
        streams: The engine sends what it has as it comes, instead of all at the end.
    """

    engine_model: str
    engine_version: int
    request_id: str
    inputs: Mapping[str, Array]
    outputs: tuple[str, ...]
    dialect: str = TENSORRT_LLM
    streams: bool = True


@dataclass(frozen=True, slots=True)
class Tokens:
    """New tokens of an answer.

    Args:
        token_ids: In order; only those that earlier events did not have. Empty when the engine answers with none.
        log_probs: One per token, when they were asked for and the engine has them.
        cum_log_prob: Their sum since the start of the answer, when the engine gives it.
    """

    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...] = ()
    cum_log_prob: float | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """New text of an answer, from an engine that makes text of its tokens itself.

    Args:
        text: Only what earlier events did not have; may be empty.
        tokens: How many tokens it was made of; None from an engine that does not say.
        prompt_tokens: Size of the prompt as the engine counts it; None from an engine that does not say.
        finish_reason: `stop` or `length` in the last event, when the engine gives it.
        log_probs: One per token, when they were asked for and the engine has them.
        cum_log_prob: Their sum since the start of the answer, when the engine gives it.
        retracted: How many characters at the end of earlier events the engine takes back: those of a stop word that it
            found when it had sent the word's start.
    """

    text: str
    tokens: int | None = None
    prompt_tokens: int | None = None
    finish_reason: str | None = None
    log_probs: tuple[float, ...] = ()
    cum_log_prob: float | None = None
    retracted: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """The engine, or Triton on its behalf, refused the request or failed. `reason` is in their words."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The engine sends nothing more for this call. Always the last of its events."""


@dataclass(frozen=True, slots=True)
class ClientGone:
    """The client has cancelled its request or closed its connection."""


Event = Tokens | Text | Failure | Ended | ClientGone


class Mailbox:
    """Events of one request, put in and read in one event loop.

    Reading takes all there is: a reader that lags gets several events at once, and can answer them with one response.
    """

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._filled = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add an event."""
        self._events.append(event)
        self._filled.set()

    async def read(self) -> list[Event]:
        """Wait for at least one event; returns all that are there, in order."""
        while not self._events:
            await self._filled.wait()
            self._filled.clear()
        events = []
        while self._events:
            events.append(self._events.popleft())
        return events


class Engine(Protocol):
    """Runs calls. All methods are called in the event loop."""

    def start(self, call: EngineCall, mailbox: Mailbox) -> None:
        """Send the call; its events come to the mailbox until `Ended`."""

    async def send_stop(self, stop: EngineCall) -> None:
        """Send a call that stops another one; errors are not raised, because the other may just have ended."""

    def hang_up(self, call: EngineCall) -> None:
        """Listen to a call no longer, which ends its events, and tells the server that nobody waits for it."""
