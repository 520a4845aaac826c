"""Folders that are made beside their place and renamed into it, so that a half-written one is never seen.

All temporary folders are named ``.<name>.<pid>-<number>.partial``. Their owner also holds a lock on them, which the
kernel frees when it dies: process ids mean nothing to another container on the same file system.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tritonforge.launch.process import process_start

PARTIAL = re.compile(r"\..+\.(?P<pid>[0-9]+)-[0-9]+\.partial", re.DOTALL)


@contextlib.contextmanager
def staged_folder(out: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder beside `out` that becomes `out` when the block ends well, and vanishes when it fails.

    Parents that do not exist are made, and removed again when the block fails.

    Args:
        out: The folder to make. An empty one may be there.
        replace: Whether a folder with something in it may be there too, which is removed when the new one is complete.

    Yields:
        The folder to fill, on the file system of `out`.

    Raises:
        OSError: The folder cannot be made, or something is at `out` that is not to be replaced.
    """
    made = [parent for parent in out.parents if not parent.exists()]  # nearest first
    try:
        with scratch_folder(out.parent, out.name) as staged:
            yield staged
            if replace:
                shutil.rmtree(out, ignore_errors=True)
            staged.rename(out)  # takes the place of an empty folder
    except BaseException:
        for parent in made:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


@contextlib.contextmanager
def scratch_folder(parent: Path, name: str) -> Iterator[Path]:
    """A folder of its own for the block, removed at its end. What dead processes left in `parent` is removed first.

    Args:
        parent: Where to make it; made when it does not exist.
        name: What it is for, as a part of its name.

    Raises:
        OSError: It cannot be made.
    """
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent)
    names = (parent / f".{name}.{os.getpid()}-{number}.partial" for number in itertools.count())
    folder, ours = next(names), False
    try:
        while not ours:
            try:
                folder.mkdir()
                ours = True
            except FileExistsError:  # another thread's, or another container's
                folder = next(names)
        with _held(folder):
            yield folder
    finally:
        if ours:
            shutil.rmtree(folder, ignore_errors=True)
        else:  # an interrupt may have come just after it was made: then it is empty
            with contextlib.suppress(OSError):
                folder.rmdir()


def sweep(parent: Path) -> None:
    """Remove the temporary folders of processes that have died. What cannot be removed is left."""
    for folder in parent.glob(".*.partial"):
        match = PARTIAL.fullmatch(folder.name)
        if match is not None and not _is_alive(int(match["pid"])) and not _is_held(folder):
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: the process id has to do
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _is_held(folder: Path) -> bool:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return True  # gone meanwhile, or not ours
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no locks here
    finally:
        os.close(descriptor)
    return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True  # somebody else's, or no process id at all
    return process_start(pid) is not None  # one that has ended stays in the table until its parent looks
