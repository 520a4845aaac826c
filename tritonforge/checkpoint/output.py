"""The output folder of a conversion or an import: it must be free, and it appears whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tritonforge.errors import CheckpointError
from tritonforge.staging import staged_folder
from tritonforge.writing import naming_as


def check_free(out: Path) -> None:
    """Refuse an output that would overwrite something. A folder with nothing in it is free, if it can be replaced.

    Raises:
        CheckpointError: Something is there, or there can be nothing of that name.
    """
    with _writing(out):
        if out.is_dir() and not any(out.iterdir()):
            # The finished folder takes its place by a rename, which would fail after all the work.
            if not out.name or _place(out).is_mount():
                what = "the working folder" if not out.name else "a mount point"
                raise CheckpointError(f"{out}: is {what}, which cannot be replaced", hint="name a new folder in it")
            return
        if out.exists() or out.is_symlink():
            raise CheckpointError(f"{out}: exists already", hint="choose another output folder, or remove this one")


@contextlib.contextmanager
def output_folder(out: Path) -> Iterator[Path]:
    """A folder to fill that becomes `out` when the block ends well, and vanishes when it fails.

    Raises:
        CheckpointError: It cannot be written.
    """
    with _writing(out), staged_folder(_place(out)) as folder:
        yield folder


def _place(out: Path) -> Path:
    """Where the output goes: where a link to a folder leads."""
    return out.resolve() if out.is_symlink() else out


def _writing(out: Path) -> AbstractContextManager[None]:
    hint = "check its parent folder: rights, and free space"
    return naming_as(CheckpointError, out, elsewhere="an output folder", fallback_hint=hint)
