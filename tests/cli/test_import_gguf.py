"""`tritonforge import-gguf` from the outside."""

import json
from pathlib import Path

import pytest

from tests.support.checkpoints import write_llama
from tests.support.gguf_files import from_checkpoint
from tritonforge.cli.main import run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return from_checkpoint(write_llama(tmp_path / "source", layers=1)).write(tmp_path / "model.gguf")


def test_json_names_the_folder_and_its_files(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"

    assert run(["import-gguf", str(file), str(out), "--dtype", "bfloat16", "--json"]) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed["path"] == str(out)
    assert printed["dtype"] == "bfloat16"
    assert printed["files"] == sorted(path.name for path in out.iterdir())


def test_progress_goes_to_standard_error_and_the_folder_to_standard_output(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["import-gguf", str(file), str(tmp_path / "out")]) == 0

    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'out'}\n"
    assert "writing" in printed.err


def test_a_file_that_is_not_gguf_exits_with_the_code_of_checkpoints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.gguf").write_bytes(b"something else")

    assert run(["import-gguf", str(tmp_path / "other.gguf"), str(tmp_path / "out")]) == 3

    assert "a GGUF file starts with" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_unknown_dtype_is_wrong_usage(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import-gguf", str(file), str(tmp_path / "out"), "--dtype", "int8"]) == 2
    assert "bfloat16" in capsys.readouterr().err
