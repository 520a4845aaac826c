"""Published engines of kind tensorrt_llm as they lie in a repository. The engines are written, not compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

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
