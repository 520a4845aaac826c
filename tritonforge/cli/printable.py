"""Text that comes from files or servers, made safe for a terminal. Pure."""

from __future__ import annotations


def printable(text: str, *, kept: str = "") -> str:
    """The text with everything that a terminal does not show written as an escape, as Python has them.

    A checkpoint or a server could otherwise move the cursor, colour or hide what follows, or write lines of its own.

    Args:
        text: What is to be shown.
        kept: Characters that are left as they are, such as a line break in a message of several lines.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else escape_of(char) for char in text)


def escape_of(char: str) -> str:
    """One character as Python writes it in a string."""
    return char.encode("unicode_escape").decode("ascii")
