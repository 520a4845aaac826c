"""Messages between the Triton model and its worker process, and their framing on a pipe. Pure.

A frame is its length (4 bytes, big endian) and a JSON list of messages. Many messages travel in one frame, so that a
reader that lags finds the tokens of several steps together.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Generation:
    """One checked request, as the pipeline takes it.

    Args:
        input_ids: The prompt; at least one id, all within the vocabulary.
        max_new_tokens: At least 1; together with the prompt within max_seq_len.
        min_new_tokens: No stop before this many new tokens; at most `max_new_tokens`.
        stop_ids: Ids that end the answer; within the vocabulary.
        stop_sequences: Sequences of two and more ids that end the answer.
        greedy: Take the most probable token each time; the sampling fields below are then unused.
        temperature: > 0.
        top_k: Sample from this many tokens; None for all.
        top_p: Sample from the most probable tokens that make up this share; (0, 1].
        seed: Same seed, same answer.
        repetition_penalty: > 0; 1 is none.
        presence_penalty: -2 to 2; 0 is none.
        frequency_penalty: -2 to 2; 0 is none.
        log_probs: Send the log probability of each token.
    """

    input_ids: Sequence[int]
    max_new_tokens: int
    min_new_tokens: int = 0
    stop_ids: Sequence[int] = ()
    stop_sequences: Sequence[Sequence[int]] = ()
    greedy: bool = True
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int = 0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    log_probs: bool = False


@dataclass(frozen=True, slots=True)
class Submit:
    """Model → worker: a new request under a key that the model chose."""

    key: int
    generation: Generation


@dataclass(frozen=True, slots=True)
class Cancel:
    """Model → worker: stop working on a request. Unknown keys are ignored: it may have finished meanwhile."""

    key: int


@dataclass(frozen=True, slots=True)
class Ready:
    """Worker → model: the engine is loaded."""

    load_s: float


@dataclass(frozen=True, slots=True)
class Update:
    """Worker → model: news of one request.

    Args:
        key: The request.
        ids: New token ids since the last update.
        log_probs: Their log probabilities, when they were asked for.
        cum_log_prob: Log probability of the whole answer so far, when it was asked for.
        finish: None while it goes on; ``stop``, ``length`` or ``cancelled`` at its end.
        error: Why the request failed, which ends it.
    """

    key: int
    ids: Sequence[int] = ()
    log_probs: Sequence[float] = ()
    cum_log_prob: float = 0.0
    finish: str | None = None
    error: str | None = None

    @property
    def final(self) -> bool:
        """Whether nothing more comes for this request."""
        return self.finish is not None or self.error is not None


@dataclass(frozen=True, slots=True)
class Broken:
    """Worker → model: the engine cannot go on; the worker ends after this."""

    reason: str


Message: TypeAlias = Submit | Cancel | Ready | Update | Broken
_KINDS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in (Submit, Cancel, Ready, Update, Broken)}


def encode(messages: Iterable[Message]) -> bytes:
    """One frame with these messages."""
    body = json.dumps([_to_json(message) for message in messages], separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body


class FrameReader:
    """Cuts a stream of bytes into messages, however the bytes arrive."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """All messages that are complete once `data` has come."""
        self._rest += data
        messages: list[Message] = []
        while len(self._rest) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._rest)
            end = LENGTH.size + length
            if len(self._rest) < end:
                break
            messages.extend(_from_json(item) for item in json.loads(self._rest[LENGTH.size : end]))
            del self._rest[:end]
        return messages


def merge(updates: Iterable[Update]) -> list[Update]:
    """Join the updates of each request into one, in the order of their first."""
    joined: dict[int, Update] = {}
    for update in updates:
        earlier = joined.get(update.key)
        joined[update.key] = update if earlier is None else _joined(earlier, update)
    return list(joined.values())


def _joined(earlier: Update, later: Update) -> Update:
    return Update(
        key=earlier.key,
        ids=[*earlier.ids, *later.ids],
        log_probs=[*earlier.log_probs, *later.log_probs],
        cum_log_prob=later.cum_log_prob,
        finish=later.finish,
        error=later.error,
    )


def _to_json(message: Message) -> list[Any]:
    # Field by field and by position: dataclasses.asdict would copy every list of tokens.
    values = [getattr(message, field.name) for field in dataclasses.fields(message)]
    if isinstance(message, Submit):
        values[1] = [getattr(message.generation, field.name) for field in dataclasses.fields(Generation)]
    return [type(message).__name__, *values]


def _from_json(item: Sequence[Any]) -> Message:
    kind, *values = item
    if kind == Submit.__name__:
        values[1] = Generation(*values[1])
    message: Message = _KINDS[kind](*values)
    return message
