"""A large file of the user's at a second place, without its bytes twice."""

from __future__ import annotations

import errno
import fcntl
import shutil
from pathlib import Path
from typing import Literal

# Of linux/fs.h: the target shares the source's blocks until one of the two is written to.
_FICLONE = 0x40049409
# Refused across file systems, by file systems without links, and for files that others own.
_NO_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EACCES})

# A server in a container reads as another user than the one who published.
READABLE = 0o644

Shared = Literal["cloned", "linked", "copied"]


def share_file(source: Path, target: Path) -> Shared:
    """Make the content of `source` appear at `target`, in the cheapest way that the file system offers.

    A clone (btrfs, XFS and others) keeps its content whatever becomes of the source. A hard link keeps it when the
    source is removed or replaced, as download tools do, but not when its bytes are overwritten in place. A copy is made
    only where neither is possible. Everybody may read a clone or a copy; a link has the mode of the source, which is
    the user's own and is left alone.

    Args:
        source: The file; a symbolic link is followed.
        target: Must not exist; its folder must.

    Raises:
        OSError: It cannot be made.
    """
    real = source.resolve(strict=True)
    if _clone(real, target):
        target.chmod(READABLE)
        return "cloned"
    try:
        target.hardlink_to(real)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        copy_readable(real, target)
        return "copied"
    return "linked"


def copy_readable(source: Path, target: Path) -> None:
    """Copy a file to a place where everybody may read it.

    Raises:
        OSError: It cannot be made.
    """
    shutil.copyfile(source, target)
    target.chmod(READABLE)


def _clone(source: Path, target: Path) -> bool:
    with source.open("rb") as old, target.open("xb") as new:
        try:
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        except OSError:
            cloned = False
        else:
            cloned = True
    if not cloned:
        target.unlink()
    return cloned
