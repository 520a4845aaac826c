"""Checkpoints that no engine or gateway could serve: the build names why, and what is published stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipeline.builds import INT8, build, write_spec
from tests.support.checkpoints import write_llama
from tests.support.files import stamps
from tests.support.rotary import llama3_scaling
from tritonforge.cli.main import run


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"max_position_embeddings": 1}, "max_position_embeddings is 1"),
        ({"rope_scaling": {"type": "linear", "factor": 1e-300}}, "rope_scaling.factor is 1e-300"),
        ({"rope_scaling": llama3_scaling() | {"low_freq_factor": 4.0}}, "contradicts itself"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], config: dict[str, object], problem: str
) -> None:
    spec = write_spec(tmp_path, write_llama(tmp_path / "checkpoint", **config))

    assert run(["build", "-f", str(spec)]) == 3

    assert problem in capsys.readouterr().err
    assert not (tmp_path / "models").exists()


def test_a_template_that_cannot_be_used_leaves_the_published_version_alone(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(write_spec(tmp_path, tiny_llama))
    before = stamps(tmp_path / "models")
    other = write_llama(tmp_path / "other", max_position=4096, seed=1)
    (other / "chat_template.jinja").write_text("{% for %}")
    second = INT8.replace("{engine:", f"{{checkpoint: {other}, engine:")

    assert run(["build", "-f", str(write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}\n      2: {second}"))]) == 3

    assert "chat_template.jinja: cannot be used to compile the chat template" in capsys.readouterr().err
    assert stamps(tmp_path / "models") == before


def test_a_tokenizer_that_its_library_cannot_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_llama(tmp_path / "checkpoint") / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pre_tokenizer": {"type": "of another release"}}))

    assert run(["build", "-f", str(write_spec(tmp_path, path.parent))]) == 3

    assert "tokenizer.json: cannot be used to load the tokenizer" in capsys.readouterr().err
