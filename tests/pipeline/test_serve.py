"""Which models a server loads when some are asked for by name."""

from __future__ import annotations

from pathlib import Path

from tests.pipeline.builds import INT8, build, write_spec
from tritonforge.pipeline.serve import with_engines


def test_gateway_brings_its_engines(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}\n      3: {INT8}"))

    assert with_engines(tmp_path / "models", ["tiny"]) == ("tiny", "tiny_engine_v1", "tiny_engine_v3")


def test_engine_and_foreign_models_stay_as_they_are(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama))

    assert with_engines(tmp_path / "models", ["tiny_engine_v1", "other"]) == ("tiny_engine_v1", "other")
