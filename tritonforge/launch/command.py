"""A command as a value: an argv tuple with its environment. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments.

    Args:
        argv: Program and arguments, one element each; never one string that something has to split.
        env: Variables set on top of the caller's environment.
        cwd: Working directory; the caller's when None.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None

    def __str__(self) -> str:
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*variables, shlex.join(self.argv)])
