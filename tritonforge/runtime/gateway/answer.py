"""One answer as it grows: tokens in, chunks for the client out. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..tensors import Array, text_tensor
from .engine import Text, Tokens
from .text_stream import Emission


@dataclass(frozen=True, slots=True)
class Usage:
    """Sizes of a finished request, in tokens. An end token counts as none of the answer's."""

    prompt_tokens: int
    completion_tokens: int


class GrowingText(Protocol):
    """The text of an answer, whatever the engine sends: `TextStream` for tokens, `PassedText` for text."""

    prompt_tokens: int
    finish_reason: str | None
    was_cut: bool

    @property
    def completion_tokens(self) -> int:
        """Tokens of the answer so far."""

    def take(self, event: Any) -> Emission:
        """Take the next event, of the kind that the engine sends."""

    def finish(self, reason: str | None = None) -> str:
        """The rest of the text."""


class Answer:
    """Collects what has arrived since the last response to the client.

    Args:
        text: Turns events into text.
        engine_version: Version that answers.
        with_log_probs: Whether responses carry log probabilities.
    """

    def __init__(self, text: GrowingText, *, engine_version: int, with_log_probs: bool) -> None:
        self._text = text
        self._engine_version = engine_version
        self._with_log_probs = with_log_probs
        self._pending = ""
        self._log_probs: list[float] = []
        self._cum_log_prob = 0.0

    @property
    def finish_reason(self) -> str | None:
        """Why the answer is over; None while it may go on."""
        return self._text.finish_reason

    @property
    def was_cut(self) -> bool:
        """Whether the answer ended before the engine could know."""
        return self._text.was_cut

    @property
    def usage(self) -> Usage:
        """Sizes so far."""
        return Usage(self._text.prompt_tokens, self._text.completion_tokens)

    @property
    def has_news(self) -> bool:
        """Whether there is text that the client does not have."""
        return bool(self._pending)

    def add(self, event: Tokens | Text) -> None:
        """Take what is new; what comes after the end of the answer is ignored."""
        emission = self._text.take(event)
        self._pending += emission.text
        kept = event.log_probs[: emission.tokens]
        self._log_probs += kept
        whole = emission.tokens == (len(event.token_ids) if isinstance(event, Tokens) else len(event.log_probs))
        if event.cum_log_prob is not None and whole:
            self._cum_log_prob = event.cum_log_prob
        else:
            self._cum_log_prob += float(np.sum(kept))

    def finish(self, reason: str | None = None) -> None:
        """Settle the rest of the text; `reason` says why when it was not the engine's own end."""
        self._pending += self._text.finish(reason)

    def take_chunk(self) -> dict[str, Array]:
        """Output tensors with the news; the last chunk, after `finish`, carries the reason and the sizes, too."""
        outputs = {"text_output": text_tensor([self._pending]), "engine_version": _int32(self._engine_version)}
        if self.finish_reason is not None:
            outputs["finish_reason"] = text_tensor([self.finish_reason])
            usage = self.usage
            outputs["prompt_tokens"] = _int32(usage.prompt_tokens)
            outputs["completion_tokens"] = _int32(usage.completion_tokens)
        if self._with_log_probs:
            outputs["cum_log_probs"] = np.array([[self._cum_log_prob]], dtype=np.float32)
            outputs["output_log_probs"] = np.array([[self._log_probs]], dtype=np.float32)
        self._pending, self._log_probs = "", []
        return outputs


def _int32(value: int) -> Array:
    return np.array([[value]], dtype=np.int32)
