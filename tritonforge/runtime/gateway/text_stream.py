"""From the engine's token ids to the text of one answer, and why it ended. Pure.

Order of the stages: end tokens, detokenisation, placeholder, white space at the edges, stop words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .detokenize import Detokenizer
from .engine import Tokens
from .text_shape import TextShape

STOP = "stop"
LENGTH = "length"
CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Emission:
    """What some tokens gave.

    Args:
        text: Text that may be shown now.
        tokens: How many of the tokens belong to the answer: all but an end token and what follows it or a stop word.
    """

    text: str
    tokens: int


class TextStream:
    """The answer to one request.

    Args:
        detokenizer: For this answer's vocabulary.
        end_ids: Tokens that end the answer. The engine may send the one that it stopped at, or keep it to itself.
        stop_words: Texts that end the answer.
        max_tokens: Tokens after which the answer is cut; decides between the reasons `stop` and `length`.
        trims_edges: Leave out white space at both ends.
        placeholder: A text of the model's, and what is shown for it.
        prompt_tokens: Size of the prompt.
    """

    def __init__(
        self,
        detokenizer: Detokenizer,
        *,
        end_ids: frozenset[int],
        stop_words: Sequence[str],
        max_tokens: int,
        trims_edges: bool = False,
        placeholder: tuple[str, str] | None = None,
        prompt_tokens: int = 0,
    ) -> None:
        self._detokenizer = detokenizer
        self._end_ids = end_ids
        self._max_tokens = max_tokens
        self._shape = TextShape(stop_words=stop_words, trims_edges=trims_edges, placeholder=placeholder)
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = 0
        self.finish_reason: str | None = None
        """None while the answer may go on; else `stop`, `length` or `cancelled`."""
        self.was_cut = False
        """True when the answer ended before the engine could know: at a stop word, or because the client left."""

    def take(self, event: Tokens) -> Emission:
        """As `push`, for the tokens of an event."""
        return self.push(event.token_ids)

    def push(self, token_ids: Sequence[int]) -> Emission:
        """Take the next tokens. Tokens after the end of the answer are ignored."""
        before = self.completion_tokens
        text = ""
        for token_id in token_ids:
            if self.finish_reason is not None:
                break
            text += self._take(token_id)
        return Emission(text, self.completion_tokens - before)

    def finish(self, reason: str | None = None) -> str:
        """The rest of the text; call it once, when the engine has ended or was told to.

        Args:
            reason: Why, when it was not the engine's own end.
        """
        text = self._shape.push(self._detokenizer.finish()) + self._shape.settle()
        if self._shape.is_stopped:
            self.finish_reason = STOP
        elif self.finish_reason is None:
            self.was_cut = reason is not None
            ended_early = self.completion_tokens < self._max_tokens
            self.finish_reason = reason or (STOP if ended_early else LENGTH)
        return text + self._shape.finish()

    def _take(self, token_id: int) -> str:
        if token_id in self._end_ids:
            self.finish_reason = STOP
            return ""
        if self.completion_tokens == self._max_tokens:
            self.finish_reason, self.was_cut = LENGTH, True  # the engine should have ended by itself
            return ""
        self.completion_tokens += 1
        text = self._shape.push(self._detokenizer.push(token_id))
        if self._shape.is_stopped:
            self.finish_reason, self.was_cut = STOP, True
        return text
