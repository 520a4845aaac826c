"""The root of the tree, misuse by the programmer, and the sentence that points at a misspelt name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import ClassVar


class TritonforgeError(Exception):
    """Base of all errors that a user can do something about.

    Args:
        message: What failed, with its value, and what was expected instead.
        hint: What to do about it, as one sentence or one command.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def place(self, where: str) -> None:
        """Name in front of the message where somebody wrote what it is about; for a caller that knows."""
        self.message = f"{where}: {self.message}"
        self.args = (self.message,)


def did_you_mean(name: str, known: Sequence[str]) -> str | None:
    """The sentence that points from a misspelt name to the nearest known one, or None when nothing is near."""
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else None


class UsageBug(RuntimeError):
    """The library was used in a way that can never work; a fault in the calling program."""
