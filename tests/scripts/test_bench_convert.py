"""What scripts/bench-convert says to arguments that it cannot use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "bench_convert.py"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--work", "missing"], "argument --work: missing: no such folder"),
        (["--work", "file"], "argument --work: file: no such folder"),
        (["--passes", "0"], "argument --passes: is '0'; expected a whole number from 1"),
        (["--layers", "many"], "argument --layers: is 'many'; expected a whole number from 1"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(tmp_path: Path, arguments: list[str], problem: str) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
