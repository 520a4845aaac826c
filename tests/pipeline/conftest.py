"""Kind tensorrt_llm without its compiler: stand-ins on PATH, and a published engine that is written, not compiled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.standin_tool import install_standin
from tests.support.trtllm_engines import write_trtllm_engine
from tritonforge.repository.layout import PublishedVersion, find_version
from tritonforge.repository.manifest import MANIFEST_NAME, Manifest, manifest_text


@pytest.fixture
def published(tmp_path: Path) -> PublishedVersion:
    """Version 2 of `tiny`, as if built by 0.16.0 for sm_90."""
    folder = tmp_path / "models" / "tiny_engine_v2" / "2"
    write_trtllm_engine(folder, "0.16.0")
    manifest = Manifest(
        model="tiny",
        version=2,
        kind="tensorrt_llm",
        checkpoint_digest="c",
        spec_digest="s",
        created="2026-01-01T00:00:00+00:00",
        release="0.16.0",
        gpu_architecture="sm_90",
        settings={"engine": {"gpus": [1], "image": None}},
        tools={"tensorrt": "10.7.0"},
    )
    (folder / MANIFEST_NAME).write_text(manifest_text(manifest))
    (folder.parent / "config.pbtxt").write_text(
        'name: "tiny_engine_v2"\nbackend: "tensorrtllm"\n'
        'parameters { key: "gpt_model_path" value { string_value: "/models/tiny_engine_v2/2" } }\n'
    )
    version = find_version(tmp_path / "models", "tiny", 2)
    assert version is not None
    return version


@pytest.fixture
def standin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trtllm-build on PATH that stands for release 0.16.0. Returns its folder."""
    folder = install_standin(tmp_path / "environment")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Path(folder)


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Gives this machine GPUs: a stand-in for nvidia-smi that lists those whose compute capabilities it is told."""

    def install(*capabilities: str) -> None:
        folder = tmp_path / "driver"
        folder.mkdir(exist_ok=True)
        lines = "".join(f"{number}, NVIDIA Test, {one}\\n" for number, one in enumerate(capabilities))
        (folder / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{lines}'\n")
        (folder / "nvidia-smi").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return install
