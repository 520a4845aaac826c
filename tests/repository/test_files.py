"""A file that cannot be written is named, with what to do about it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tritonforge.errors import PublishFailed
from tritonforge.repository.files import naming


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EROFS, "make it writable, or use a repository in another place"),
        (errno.EACCES, "make it writable"),
    ],
)
def test_a_place_that_takes_no_files_says_what_to_do(number: int, advice: str) -> None:
    expected = f"^models: cannot be written: {os.strerror(number)}$"
    with pytest.raises(PublishFailed, match=expected) as caught, naming(Path("models")):
        raise OSError(number, os.strerror(number))
    assert advice in str(caught.value.hint)


def test_the_callers_advice_comes_before_the_general_one() -> None:
    with pytest.raises(PublishFailed) as caught, naming(Path("models"), hint="ask the owner"):
        raise OSError(errno.EROFS, "read-only")
    assert caught.value.hint == "ask the owner"
