"""Runs all rules over a repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonforge.errors import RepositoryError, did_you_mean
from tritonforge.repository.lint.finding import Finding
from tritonforge.repository.lint.rule import ModelRule, Problem, RepositoryRule
from tritonforge.repository.lint.rules import MODEL_RULES, REPOSITORY_RULES
from tritonforge.repository.lint.rules.layout import UNREADABLE, unreadable
from tritonforge.repository.lint.view import ModelView, RepositoryView, view_repository

AnyRule = ModelRule | RepositoryRule


def lint(repository: Path, *, beside: Path | None = None) -> list[Finding]:
    """Check a repository without a server.

    Args:
        repository: Its folder; or a staging folder that is laid out like one.
        beside: The repository that a staging folder is going to be published in: its models are seen, but not
            reported on.

    Returns:
        Findings by path and line; empty when there is nothing to say.

    Raises:
        RepositoryError: There is no such folder.
    """
    if not repository.is_dir():
        raise RepositoryError(f"{repository}: no such folder", hint="pass the folder that holds the model folders")
    view = view_repository(repository, beside=beside if beside is not None and beside.is_dir() else None)
    findings = [*_root_findings(view), *(found for model in view.checked_models for found in _findings(model, view))]
    return sorted(dict.fromkeys(findings), key=lambda found: (str(found.path), found.line or 0, found.code))


def explanation_of(code: str) -> str:
    """Why a rule exists.

    Raises:
        RepositoryError: There is no rule of that name.
    """
    explanations = {rule.code: rule.explanation for rule in (*REPOSITORY_RULES, *MODEL_RULES)}
    if code not in explanations:
        hint = did_you_mean(code, list(explanations)) or f"rules: {', '.join(sorted(explanations))}"
        raise RepositoryError(f"there is no rule {code!r}", hint=hint)
    return explanations[code]


def _root_findings(view: RepositoryView) -> Iterator[Finding]:
    for rule in REPOSITORY_RULES:
        for found, problem in _problems(rule, rule.check(view)):
            yield _finding(found, problem, default=view.root)


def _findings(model: ModelView, view: RepositoryView) -> Iterator[Finding]:
    for rule in MODEL_RULES:
        if rule.needs_config and model.config is None:
            continue
        for found, problem in _problems(rule, rule.check(model, view)):
            yield _finding(found, problem, default=model.config_file)


def _problems(rule: AnyRule, check: Iterator[Problem]) -> Iterator[tuple[AnyRule, Problem]]:
    """What a rule sees; when a file or folder keeps it from looking, that."""
    try:
        for problem in check:
            yield rule, problem
    except OSError as error:
        yield UNREADABLE, unreadable(error)


def _finding(rule: AnyRule, problem: Problem, *, default: Path) -> Finding:
    return Finding(
        code=rule.code,
        severity=problem.severity or rule.severity,
        path=problem.path or default,
        line=problem.line,
        message=problem.message,
        fix=problem.fix,
    )
