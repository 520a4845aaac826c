"""The answer of an engine that makes text of its tokens itself, and why it ended. Pure."""

from __future__ import annotations

from collections.abc import Callable

from .engine import Text
from .text_shape import TextShape
from .text_stream import LENGTH, STOP, Emission


class PassedText:
    """The answer to one request.

    Args:
        shape: What is done to the text.
        prompt_tokens: Size of the prompt as the gateway counts it; the engine's own count takes its place.
        max_tokens: Most tokens of the answer, which the engine keeps; decides between the reasons `stop` and `length`
            where the engine gives none.
        count_tokens: Counts the tokens of a text, for an engine that does not.
        drops_first_space: Leave out one space at the start, which belongs to the first word's spelling.
    """

    def __init__(
        self,
        shape: TextShape,
        *,
        prompt_tokens: int,
        max_tokens: int,
        count_tokens: Callable[[str], int],
        drops_first_space: bool,
    ) -> None:
        self._shape = shape
        self._max_tokens = max_tokens
        self._count_tokens = count_tokens
        self._drops_space = drops_first_space
        self._counted: int | None = None
        self._shown: list[str] = []
        self.prompt_tokens = prompt_tokens
        self.finish_reason: str | None = None
        """None while the answer may go on; else `stop`, `length` or `cancelled`."""
        self.was_cut = False
        """True when the answer ended before the engine could know: at a stop word, or because the client left."""

    @property
    def completion_tokens(self) -> int:
        """Tokens of the answer: the engine's own count, which includes an end token; else those of the text shown."""
        return self._count_tokens("".join(self._shown)) if self._counted is None else self._counted

    def take(self, event: Text) -> Emission:
        """Take the next text. What follows the end of the answer is ignored."""
        if self.finish_reason is not None:
            return Emission("", 0)
        if event.tokens is not None:
            self._counted = (self._counted or 0) + event.tokens
        if event.prompt_tokens is not None:
            self.prompt_tokens = event.prompt_tokens
        self._shape.retract(event.retracted)
        shown = self._shape.push(self._without_first_space(event.text))
        self._shown.append(shown)
        self.finish_reason = event.finish_reason
        if self._shape.is_stopped:
            self.finish_reason, self.was_cut = STOP, event.finish_reason is None
        return Emission(shown, len(event.log_probs))

    def finish(self, reason: str | None = None) -> str:
        """The rest of the text; call it once, when the engine has ended or was told to.

        Args:
            reason: Why, when it was not the engine's own end.
        """
        text = self._shape.settle()
        text += self._shape.finish()
        self._shown.append(text)
        if self._shape.is_stopped:
            self.finish_reason = STOP
        elif self.finish_reason is None:
            self.was_cut = reason is not None
            self.finish_reason = reason or (STOP if self.completion_tokens < self._max_tokens else LENGTH)
        return text

    def _without_first_space(self, text: str) -> str:
        if not self._drops_space or not text:
            return text
        self._drops_space = False
        return text.removeprefix(" ")
