"""Which models a server loads: those asked for with their engines, and none that the embedded server cannot run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.pipeline.builds import INT8, build, write_spec
from tests.support.standin_tool import install_standin
from tritonforge.cli.main import run
from tritonforge.errors import EngineMismatch
from tritonforge.pipeline.serve import serve, with_engines
from tritonforge.server.options import ServerOptions


def test_gateway_brings_its_engines(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}\n      3: {INT8}"))

    assert with_engines(tmp_path / "models", ["tiny"]) == ("tiny", "tiny_engine_v1", "tiny_engine_v3")


def test_engine_and_foreign_models_stay_as_they_are(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama))

    assert with_engines(tmp_path / "models", ["tiny_engine_v1", "other"]) == ("tiny_engine_v1", "other")


@pytest.fixture
def mixed(tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with `tiny` for TensorRT-LLM (1) and for the CPU (2), and with `gpu` for TensorRT-LLM alone."""
    monkeypatch.setenv("PATH", f"{install_standin(tmp_path / 'environment')}:{os.environ['PATH']}")
    trtllm = '{engine: {kind: tensorrt_llm, release: "0.16.0", executor: local}}'
    limits = "    limits: {max_batch_size: 4, max_seq_len: 128}\n"
    other = f"{limits}  - {{name: gpu, checkpoint: {tiny_llama}, versions: {{1: {trtllm}}}, {limits.strip()}}}\n"
    build(write_spec(tmp_path, tiny_llama, versions=f"1: {trtllm}\n      2: {INT8}", more=other))
    return tmp_path / "models"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...] | None]:
    """Instead of starting a server, notes the models that it would load."""
    models: list[tuple[str, ...] | None] = []
    monkeypatch.setattr("tritonforge.pipeline.serve.start_embedded", lambda _, options: models.append(options.models))
    return models


def test_a_gateway_is_served_without_the_engines_that_cannot_run_here(mixed: Path, started: list) -> None:
    said: list[str] = []

    serve(mixed, options=ServerOptions(models=("tiny",)), on_event=said.append)

    assert started == [("tiny", "tiny_engine_v2")]
    (line,) = said
    assert line.startswith("left out: tiny_engine_v1 cannot be loaded: it needs Triton's backend 'tensorrtllm'")


def test_an_engine_that_cannot_run_here_is_refused_when_it_is_named(mixed: Path, started: list) -> None:
    for models in (("tiny", "tiny_engine_v1"), ("gpu",)):
        with pytest.raises(EngineMismatch, match="'tensorrtllm', and the embedded server has python only") as caught:
            serve(mixed, options=ServerOptions(models=models))
        assert "24.12-trtllm-python-py3" in str(caught.value.hint)
    assert started == []


def test_serving_everything_says_how_the_rest_is_served(mixed: Path, started: list) -> None:
    with pytest.raises(EngineMismatch) as caught:
        serve(mixed)

    assert str(caught.value.hint).endswith(f"the rest is served by: tritonforge serve {mixed} --model tiny")
    assert started == []


def test_engines_that_take_text_are_not_taken_for_runnable_here(
    tiny_llama: Path, tmp_path: Path, started: list
) -> None:
    texts = '1: {engine: {kind: vllm}}\n      2: {engine: {kind: llmapi, release: "1.0.0"}}'
    build(write_spec(tmp_path, tiny_llama, versions=texts))

    for models in (None, ("tiny",)):
        with pytest.raises(EngineMismatch) as caught:
            serve(tmp_path / "models", options=ServerOptions(models=models))
        assert "tritonforge serve" not in str(caught.value.hint)
    assert started == []


def test_a_build_says_how_each_kind_is_served(mixed: Path, tiny_llama: Path) -> None:
    result = build(mixed.parent / "forge.yaml")

    ours, container = result.start
    assert ours == f"tritonforge serve {mixed} --model tiny"
    assert container == (
        f"docker run --rm --gpus all --network host --shm-size 2g -v {mixed}:{mixed}:ro "
        f"nvcr.io/nvidia/tritonserver:24.12-trtllm-python-py3 tritonserver --model-repository {mixed} "
        f"--model-control-mode explicit --load-model gpu_engine_v1 --load-model tiny_engine_v1 --load-model gpu "
        f"--load-model tiny"
    )


def test_the_advice_after_a_build_is_what_can_be_done(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = write_spec(tmp_path, tiny_llama, versions="1: {engine: {kind: vllm}}")
    assert run(["build", "-f", str(spec)]) == 0

    shown = capsys.readouterr()
    assert "tritonforge serve" not in shown.err
    assert f"    docker run --rm --gpus all --network host --shm-size 2g -v {tmp_path}/models:" in shown.err
    assert "miss" not in shown.out


def test_what_fits_is_served_as_it_is(tiny_llama: Path, tmp_path: Path, started: list) -> None:
    build(write_spec(tmp_path, tiny_llama))

    serve(tmp_path / "models")

    assert started == [None]
