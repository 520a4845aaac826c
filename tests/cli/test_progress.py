"""The progress bar: on a terminal, and nowhere else."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkpoints import write_llama
from tritonforge.cli.progress import progress_bar


def on_terminal(command: list[str]) -> tuple[int, str]:
    """Run a command whose standard error is a terminal."""
    ours, theirs = pty.openpty()
    try:
        child = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        )
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 4096):
                text += piece
        except OSError:  # the other end is closed
            pass
        return child.wait(timeout=60), text.decode()
    finally:
        os.close(ours)


@pytest.mark.parametrize(("options", "shown"), [([], True), (["--json"], False)])
def test_a_terminal_sees_a_bar_unless_a_program_reads_the_result(
    tmp_path: Path, options: list[str], shown: bool
) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    command = [sys.executable, "-m", "tritonforge", "convert", str(source), str(tmp_path / "out"), *options]
    code, text = on_terminal(command)
    assert code == 0
    assert ("kB" in text) == shown
    assert "converting LlamaForCausalLM" in text
    assert text.rstrip().endswith(f"wrote {tmp_path / 'out'}")


def test_elsewhere_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("x", wanted=True) as tell:
        tell(1, 2)
    assert capsys.readouterr().err == ""
