"""Why a model repository cannot be written, read or changed."""

from __future__ import annotations

from pathlib import Path

from tritonforge.errors.base import TritonforgeError


class RepositoryError(TritonforgeError):
    """A model repository cannot be written, read or changed."""

    exit_code = 5


class ConfigInvalid(RepositoryError):
    """A config.pbtxt is not a valid ModelConfig.

    Args:
        file: The file.
        problem: What is wrong.
        line: Line counted from 1, when known.
    """

    def __init__(self, file: Path | str, problem: str, *, line: int | None = None, hint: str | None = None) -> None:
        place = f"{file}:{line}" if line is not None else str(file)
        super().__init__(f"{place}: {problem}", hint=hint)
        self.file = file
        self.line = line
        self.problem = problem


class EngineMismatch(RepositoryError):
    """An engine does not fit the server or the GPU that is to run it: it is not loaded."""


class PublishFailed(RepositoryError):
    """A version could not be published; the repository is as it was before."""


class RepositoryLocked(RepositoryError):
    """Another process is changing the repository."""


class TemplateError(RepositoryError):
    """A template is missing, does not parse, or uses a variable that does not exist.

    Args:
        template: Its name.
        problem: What is wrong.
        line: Line in the template counted from 1, when known.
    """

    def __init__(self, template: str, problem: str, *, line: int | None = None) -> None:
        place = f"{template}:{line}" if line is not None else template
        super().__init__(f"template {place}: {problem}")
        self.template = template
        self.line = line
        self.problem = problem
