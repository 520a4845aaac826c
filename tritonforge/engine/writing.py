"""Writing an engine's files so that a failure names the file."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from tritonforge.errors import BuildError
from tritonforge.writing import naming_as


def naming(path: Path, failures: tuple[type[Exception], ...] = (OSError,)) -> AbstractContextManager[None]:
    """Turn a failure to write into a `BuildError` that names the file.

    Args:
        path: What is being written.
        failures: What says that it could not be written.
    """
    hint = "check the free space of that disk, and the rights of its folder"
    return naming_as(BuildError, path, elsewhere="a folder", fallback_hint=hint, failures=failures)
