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
        self._longest = max((len(word) for word in self._words), default=0)
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
        keep = self._longest_open_prefix()
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

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

    def _longest_open_prefix(self) -> int:
        for length in range(min(self._longest - 1, len(self._held)), 0, -1):
            tail = self._held[-length:]
            if any(len(word) > length and word.startswith(tail) for word in self._words):
                return length
        return 0
