"""What the lint reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Triton refuses the model, or every request to it fails."""

    WARNING = "warning"
    """Triton loads the model, but it does not do what the config seems to say."""

    INFO = "info"
    """Nothing is wrong; a default that surprises people."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at in a repository.

    Args:
        code: Name of the rule, stable over releases.
        severity: How bad it is.
        path: File or folder.
        line: Line counted from 1; None when it is not about a line.
        message: What is wrong, with its value, and what happens because of it.
        fix: What to do.
    """

    code: str
    severity: Severity
    path: Path
    line: int | None
    message: str
    fix: str
