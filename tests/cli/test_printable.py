"""What a checkpoint calls itself reaches the terminal as text, never as a command to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.support.checkpoints import write_llama
from tritonforge.cli.main import group, run, show_error
from tritonforge.cli.output import print_json, print_table, say
from tritonforge.cli.printable import printable
from tritonforge.errors import CheckpointError

HOSTILE = "Llama\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\ud800\x7f\r"
ESCAPED = r"Llama\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\ud800\x7f\r"


def is_clean(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


@given(st.text(st.characters()))
def test_nothing_but_what_is_shown_is_left(text: str) -> None:
    assert printable(text).isprintable()
    assert is_clean(printable(text, kept="\n"))


@given(st.text(st.characters(exclude_categories=["C", "Z"])))
def test_what_is_shown_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_inspect_and_convert_show_a_hostile_architecture_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, architecture=HOSTILE)
    assert run(["inspect", str(source)]) == 0
    assert run(["convert", str(source), str(tmp_path / "out")]) == 3
    out, err = capsys.readouterr()
    assert is_clean(out)
    assert is_clean(err)
    assert ESCAPED in out
    assert ESCAPED in err


def test_json_escapes_what_a_terminal_would_obey_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"name": HOSTILE + "\U000e0041 é\n"}
    print_json(value)
    text = capsys.readouterr().out
    assert is_clean(text)
    assert "é" in text
    assert json.loads(text) == value


def test_errors_keep_their_lines_and_escape_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(CheckpointError(f"first\nsecond {HOSTILE}", hint=HOSTILE))
    say(HOSTILE)
    err = capsys.readouterr().err
    assert is_clean(err)
    assert err.count(ESCAPED) == 3
    assert "first\nsecond" in err


def test_a_usage_error_escapes_what_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "a", "\x1b[2Jb"]) == 2
    assert is_clean(capsys.readouterr().err)


def test_cells_of_a_table_are_text_and_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name",), [("[red]a[/red]",), ("\x1b[2Jb",)], title="of \x1b[2J[red]")
    out = capsys.readouterr().out
    assert is_clean(out)
    assert "[red]a[/red]" in out
    assert r"\x1b[2Jb" in out
    assert r"of \x1b[2J[red]" in out


def test_findings_of_lint_are_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "m"
    folder.mkdir(parents=True)
    (folder / "config.pbtxt").write_text('name: "m\\033[2J"\nbackend: "\\033[2J"\nmax_batch_size: 1\n')
    result = CliRunner().invoke(group, ["lint", str(tmp_path / "models")])
    assert "\x1b[2J" not in result.output
    assert result.exit_code == 1
