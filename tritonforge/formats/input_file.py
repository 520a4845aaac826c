"""Opening the files of a checkpoint: regular files only, and what is read whole has a limit.

A checkpoint comes from somewhere else. A named pipe in it would be waited for without end, a link to a device would be
read until the memory is full, and each failure has to name its file.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tritonforge.errors import CheckpointNotFound, CorruptFile

# Kinds of files that are not read, by the predicate of the standard library.
_OTHER_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the operating system says of a file or folder into an error of a checkpoint that names it.

    Raises:
        CheckpointNotFound: It does not exist.
        CorruptFile: It cannot be read.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise CheckpointNotFound(f"{_named(error, path)}: no such file") from error
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise CorruptFile(_named(error, path), problem, hint="check its name and your rights to read it") from error


@contextlib.contextmanager
def open_input(path: Path) -> Iterator[BinaryIO]:
    """A regular file, or a link to one, opened for reading.

    Raises:
        CheckpointNotFound: It does not exist.
        CorruptFile: It is no regular file, or it cannot be read.
    """
    with reading(path):
        # Without O_NONBLOCK a pipe waits for somebody to write; regular files are read as ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _require_regular(path, os.fstat(descriptor).st_mode)
            with open(descriptor, "rb", closefd=False) as stream:
                yield stream
        finally:
            os.close(descriptor)


def read_input(path: Path, *, most_bytes: int) -> bytes:
    """The content of a regular file.

    Args:
        path: The file.
        most_bytes: Largest size that can be meant.

    Raises:
        CheckpointNotFound: It does not exist.
        CorruptFile: It is no regular file, larger than that, or cannot be read.
    """
    with open_input(path) as stream:
        size_bytes = os.fstat(stream.fileno()).st_size
        if size_bytes > most_bytes:
            raise CorruptFile(path, f"has {size_bytes:,} bytes; expected at most {most_bytes:,}")
        return stream.read(most_bytes)


def has_file(path: Path) -> bool:
    """Whether there is a regular file; a link that leads nowhere counts as none.

    Raises:
        CorruptFile: Something else is there, or it cannot be told.
    """
    with reading(path):
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        _require_regular(path, mode)
    return True


def _require_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _OTHER_KINDS if is_kind(mode)), "something else")
        raise CorruptFile(path, f"is {kind}; expected a regular file", hint="copy the file itself into the folder")


def _named(error: OSError, path: Path) -> Path:
    """The file that the error is about, which may lie in the folder that was to be read."""
    return Path(os.fsdecode(error.filename)) if isinstance(error.filename, (str, bytes)) else path
