"""Stop words on growing text: cut at the first one, and hold back what could still become one. Pure."""

from __future__ import annotations

from collections.abc import Sequence


class StopWords:
    """Finds stop words across chunk borders; what comes out does not depend on how the text is cut into chunks.

    Among the words found the one with the smallest end wins, then the one with the smallest start: a choice by the
    smallest start would depend on the chunks where words overlap.

    Args:
        words: Non-empty texts.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(words)
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        """Add text; returns what is safe to show. After `found` is true there is nothing more to show."""
        if self.found:
            return ""
        if not self._words:
            return text
        self._held += text
        start = self._match()
        if start is not None:
            self.found = True
            shown, self._held = self._held[:start], ""
            return shown
        keep = longest_open_prefix(self._held, self._words)
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

    def retract(self, count: int) -> None:
        """Forget the last characters, as far as they were not shown yet."""
        self._held = self._held[: max(0, len(self._held) - count)]

    def finish(self) -> str:
        """What was held back, once no more text can come."""
        shown, self._held = self._held, ""
        return shown

    def _match(self) -> int | None:
        best: tuple[int, int] | None = None
        for word in self._words:
            start = self._held.find(word)
            if start >= 0 and (best is None or (start + len(word), start) < best):
                best = (start + len(word), start)
        return None if best is None else best[1]


def longest_open_prefix(text: str, words: Sequence[str]) -> int:
    """Length of the longest end of `text` that begins one of the words without being all of it."""
    longest = max((len(word) for word in words), default=0)
    for length in range(min(longest - 1, len(text)), 0, -1):
        tail = text[-length:]
        if any(len(word) > length and word.startswith(tail) for word in words):
            return length
    return 0
