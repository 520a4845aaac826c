"""How a stage tells what it is doing: it calls a function with one line of text for each step."""

from __future__ import annotations

from collections.abc import Callable

OnEvent = Callable[[str], None]
OnProgress = Callable[[int, int], None]  # how much is done, and of how much


def ignore(_event: str) -> None:
    """Tell nobody: what a stage does when its caller does not want to know."""


def ignore_progress(_done: int, _total: int) -> None:
    """Tell nobody how far it is."""
