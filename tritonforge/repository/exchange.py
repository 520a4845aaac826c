"""Exchanging two files or folders in one step, where the kernel can (renameat2 with RENAME_EXCHANGE)."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable
from pathlib import Path

AT_FDCWD = -100  # fcntl.h: paths are relative to the working directory
RENAME_EXCHANGE = 2  # linux/fs.h
# The kernel is older than 3.15, or the file system (NFS, some FUSE and overlay mounts) cannot exchange.
UNSUPPORTED_ERRNOS = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def swap(one: Path, other: Path, *, spare: Path) -> None:
    """Exchange two existing files or folders of one file system.

    Where the kernel cannot exchange them at once, `other` is missing for the moment between two renames, and `spare`
    holds what stood there; each of the three is always somewhere, so that an interrupted swap can be undone.

    Args:
        one: First path.
        other: Second path.
        spare: Free path on the same file system.

    Raises:
        OSError: They cannot be renamed.
    """
    try:
        _exchange(one, other)
    except OSError as error:
        if error.errno not in UNSUPPORTED_ERRNOS:
            raise
        other.rename(spare)
        one.rename(other)
        spare.rename(one)


def _exchange(one: Path, other: Path) -> None:
    call = _renameat2()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one), None, str(other))


@functools.cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """The C library's renameat2, or None before glibc 2.28 and musl 1.2.4."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        function = library.renameat2
    except AttributeError:
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    return function
