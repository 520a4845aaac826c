"""Why a file cannot be written, in the words of every stage."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tritonforge.errors import BuildError
from tritonforge.writing import naming_as


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free some space on that file system"),
        (errno.EACCES, "make it writable, or use a folder in another place"),
        (errno.EIO, "look at the disk"),
    ],
)
def test_the_reason_decides_the_hint(number: int, hint: str) -> None:
    with (
        pytest.raises(BuildError) as caught,
        naming_as(BuildError, Path("engine.bin"), elsewhere="a folder", fallback_hint="look at the disk"),
    ):
        raise OSError(number, os.strerror(number))

    assert caught.value.message == f"engine.bin: cannot be written: {os.strerror(number)}"
    assert caught.value.hint == hint


def test_a_reader_that_has_gone_is_no_fault_of_the_file() -> None:
    with pytest.raises(BrokenPipeError), naming_as(BuildError, Path("engine.bin"), elsewhere="a folder"):
        raise BrokenPipeError
