"""A placeholder that a model writes for something its makers fill in, on growing text. Pure."""

from __future__ import annotations

from .stop_words import longest_open_prefix


class Placeholder:
    """Replaces a fixed text, also when it straddles two chunks.

    Args:
        name: What the model writes; not empty.
        value: What is shown instead.
    """

    def __init__(self, name: str, value: str) -> None:
        self._name = name
        self._value = value
        self._held = ""

    def push(self, text: str) -> str:
        """Add text; returns what is certain, with the placeholder replaced."""
        *done, last = (self._held + text).split(self._name)
        keep = longest_open_prefix(last, [self._name])
        self._held = last[len(last) - keep :]
        return self._value.join([*done, last[: len(last) - keep]])

    def finish(self) -> str:
        """What was held back, once no more text can come."""
        shown, self._held = self._held, ""
        return shown
