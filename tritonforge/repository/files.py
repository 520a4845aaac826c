"""Writing files so that a failure names the file, and so that what was written survives a power cut."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from tritonforge.errors import PublishFailed
from tritonforge.writing import naming_as

# A hard link is refused across file systems, by file systems without links, and for files that others own.
NO_LINK_ERRNOS = frozenset({errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EACCES})


def naming(path: Path, action: str = "written", *, hint: str | None = None) -> AbstractContextManager[None]:
    """Turn an OSError into a `PublishFailed` that names the file.

    Args:
        path: The file.
        action: What is being done to it, as a past participle.
        hint: What to do when it fails; a full disk has a hint of its own, as has a folder without the right to write.
    """
    return naming_as(PublishFailed, path, action, elsewhere="a repository", hint=hint)


def write_text(path: Path, text: str) -> None:
    """Write a new text file and the folders above it.

    Raises:
        PublishFailed: It cannot be written.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def replace_text(path: Path, text: str, *, via: Path) -> None:
    """Replace a file in one step: a reader sees the old text or the new one, also after a power cut.

    Args:
        path: The file.
        text: Its new content.
        via: Folder for the temporary file, on the same file system.

    Raises:
        PublishFailed: It cannot be written; the file is as it was.
    """
    temporary = via / f"{path.name}.{os.getpid()}.new"
    try:
        with naming(path):
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def copy(source: Path, target: Path) -> None:
    """Copy a file to a place of its own.

    Raises:
        PublishFailed: The target cannot be written.
    """
    with naming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def place(source: Path, target: Path) -> None:
    """Make `source` appear at `target`: as a hard link, or as a copy where links are not possible.

    The two names may then share one file, so neither may be changed in place; replace files, do not rewrite them.

    Raises:
        PublishFailed: The target cannot be written.
    """
    with naming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(source.resolve(strict=True))
        except OSError as error:
            if error.errno not in NO_LINK_ERRNOS:
                raise
            shutil.copy2(source, target)


def sync(path: Path) -> None:
    """Force a file or a folder's list of names to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Force a folder with everything in it to the disk."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            with naming(path):
                sync(path)
    with naming(folder):
        sync(folder)
