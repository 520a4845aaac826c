"""What the README shows works as it is written there."""

from __future__ import annotations

import contextlib
import io
import json
import re
import urllib.request
from pathlib import Path

import pytest

from tests.integration.conftest import Served
from tritonforge.cli.main import COMMANDS
from tritonforge.spec.load import load_spec

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_yaml_is_a_specification(tmp_path: Path) -> None:
    loaded = [load_spec(write(tmp_path / f"{number}.yaml", text)) for number, text in enumerate(blocks("yaml"))]

    embedded, tensorrt_llm = [one.spec.models[0] for one in loaded]
    assert embedded.traffic == {1: 95, 2: 5}
    assert tensorrt_llm.versions[1].engine.kind == "tensorrt_llm"


def test_commands_exist() -> None:
    used = set(re.findall(r"^tritonforge (\S+)", "".join(blocks("sh")), flags=re.MULTILINE))

    assert {"build", "serve", "generate"} <= used <= set(COMMANDS)


@pytest.mark.triton
def test_python_runs(served: Served) -> None:
    (code,) = blocks("python")
    code = code.replace('"smollm2"', '"tale"').replace("localhost:8001", served.server.grpc_url)
    printed = io.StringIO()

    with contextlib.redirect_stdout(printed):
        exec(code, {})  # our own text

    assert printed.getvalue().strip()


@pytest.mark.triton
def test_curl_line_is_answered(served: Served) -> None:
    (body,) = re.findall(r"^curl .*/v2/models/smollm2/generate -d '(.*)'$", README, flags=re.MULTILINE)
    url = f"{served.server.http_url}/v2/models/tale/generate"

    with urllib.request.urlopen(urllib.request.Request(url, data=body.encode()), timeout=60) as response:
        answer = json.load(response)

    assert answer["completion_tokens"] == 8
    assert answer["text_output"]
