import json
import sys
from pathlib import Path

import pytest

from tritonforge.cli.main import run


def test_doctor_reports_every_check_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code = run(["doctor", "--folder", str(tmp_path), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert code == (0 if report["ok"] else 1)
    names = {check["name"] for check in report["checks"]}
    assert {"python", "libpython", "nvidia-pytriton", "port 8001", "memory", "disk", "cpu"} <= names
    assert {"docker", "trtllm-build"} <= names


def test_doctor_fails_when_something_needed_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "pytriton", None)
    assert run(["doctor", "--folder", str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert "fail  nvidia-pytriton: nvidia-pytriton is not installed" in output
    assert "fix: pip install 'tritonforge[embedded]'" in output
