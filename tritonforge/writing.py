"""What to say when a file cannot be written. The stages turn it into an error of their own branch."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from tritonforge.errors import TritonforgeError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FORBIDDEN = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


@contextlib.contextmanager
def naming_as(
    kind: type[TritonforgeError],
    path: Path,
    action: str = "written",
    *,
    elsewhere: str,
    hint: str | None = None,
    fallback_hint: str | None = None,
    failures: tuple[type[Exception], ...] = (OSError,),
) -> Iterator[None]:
    """Turn a failure to write into an error that names the file.

    Args:
        kind: The error.
        path: The file or folder.
        action: What is being done to it, as a past participle.
        elsewhere: What can be put in another place when there is no right to write.
        hint: What to do when it fails for any other reason than a full disk.
        fallback_hint: What to do when the reason says nothing about it.
        failures: What says that it could not be written.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # no file: whoever reads what the command prints has gone
    except failures as error:
        number = error.errno if isinstance(error, OSError) else None
        if number in _FULL:
            hint = "free some space on that file system"
        elif hint is None and number in _FORBIDDEN:
            hint = f"make it writable, or use {elsewhere} in another place"
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise kind(f"{path}: cannot be {action}: {reason}", hint=hint or fallback_hint) from error
