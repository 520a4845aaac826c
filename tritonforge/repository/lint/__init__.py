"""Offline checks of a model repository, whoever wrote it."""

from tritonforge.repository.lint.finding import Finding, Severity
from tritonforge.repository.lint.run import explanation_of, lint

__all__ = ["Finding", "Severity", "explanation_of", "lint"]
