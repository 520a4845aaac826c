"""`tritonforge convert` from the outside."""

import json
from pathlib import Path

import pytest

from tests.support.checkpoints import write_llama
from tritonforge.cli.main import run


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_progress_goes_to_standard_error_also_with_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    source, out = write_llama(tmp_path / "hf", tokenizer=None), tmp_path / "out"

    assert run(["convert", str(source), str(out), *options]) == 0

    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.err.splitlines()] == ["converting", "wrote"]
    assert (json.loads(printed.out)["path"] if options else printed.out.strip()) == str(out)
