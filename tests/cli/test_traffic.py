"""What `traffic` refuses before it looks at the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonforge.cli.main import run


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        (["1=5", "2=3", "1=5"], "version 1 is given more than one weight"),
        (["1=5", "01=3"], "version 1 is given more than one weight"),
        (["1:5"], "is not VERSION=WEIGHT"),
        (["9" * 5000 + "=1"], "is not VERSION=WEIGHT"),
    ],
)
def test_weights_that_cannot_be_meant_are_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], weights: list[str], problem: str
) -> None:
    assert run(["traffic", str(tmp_path), "tiny", *weights]) == 2
    assert problem in capsys.readouterr().err
