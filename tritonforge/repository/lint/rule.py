"""A rule: data, and a small function that yields the problems it sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.view import ModelView, RepositoryView


@dataclass(frozen=True, slots=True)
class Problem:
    """What a rule's function found.

    Args:
        message: What is wrong, with its value, and what happens because of it.
        fix: What to do.
        line: Line in the config.
        path: File or folder; the model's config when None.
        severity: When it differs from the rule's.
    """

    message: str
    fix: str
    line: int | None = None
    path: Path | None = None
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class RepositoryRule:
    """A rule about the repository's root.

    Args:
        code: Its name.
        severity: How bad a problem of this kind is.
        explanation: Why it matters, for ``--explain``.
        check: Yields the problems.
    """

    code: str
    severity: Severity
    explanation: str
    check: Callable[[RepositoryView], Iterator[Problem]]


@dataclass(frozen=True, slots=True)
class ModelRule:
    """A rule about one model, seen with the models around it.

    Args:
        code: Its name.
        severity: How bad a problem of this kind is.
        explanation: Why it matters, for ``--explain``.
        check: Yields the problems.
        needs_config: The rule looks at the parsed config, so it is skipped when there is none.
    """

    code: str
    severity: Severity
    explanation: str
    check: Callable[[ModelView, RepositoryView], Iterator[Problem]]
    needs_config: bool = True
