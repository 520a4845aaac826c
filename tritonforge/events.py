"""How a stage tells what it is doing: it calls a function with one line of text for each step."""

from __future__ import annotations

from collections.abc import Callable

OnEvent = Callable[[str], None]


def ignore(_event: str) -> None:
    """Tell nobody: what a stage does when its caller does not want to know."""
