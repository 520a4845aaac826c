"""Writing an engine's files so that a failure names the file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tritonforge.errors import BuildError


@contextlib.contextmanager
def naming(path: Path, failures: tuple[type[Exception], ...] = (OSError,)) -> Iterator[None]:
    """Turn a failure to write into a `BuildError` that names the file.

    Args:
        path: What is being written.
        failures: What says that it could not be written.
    """
    try:
        yield
    except failures as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise BuildError(
            f"{path}: cannot be written: {reason}",
            hint="check the free space of that disk, and the rights of its folder",
        ) from error
