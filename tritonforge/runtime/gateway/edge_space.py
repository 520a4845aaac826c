"""White space at both ends of a growing text. Pure."""

from __future__ import annotations


class EdgeSpace:
    """Leaves out white space at the start, and holds it back at the end until more text follows."""

    def __init__(self) -> None:
        self._started = False
        self._held = ""

    def push(self, text: str) -> str:
        """What of the text so far is certain to be inside."""
        text = self._held + text
        if not self._started:
            text = text.lstrip()
        self._started = self._started or bool(text)
        inside = text.rstrip()
        self._held = text[len(inside) :]
        return inside
