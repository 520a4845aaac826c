"""Each kind of engine that forge.yaml takes can be built; those that serve a checkpoint as it is take it along."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tests.pipeline.builds import build, write_spec
from tests.support.checkpoints import write_chatglm
from tritonforge.errors import UnsupportedModel
from tritonforge.pipeline.kinds import KINDS
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.pipeline.preview import preview_spec
from tritonforge.repository.layout import find_version
from tritonforge.spec.engine import EngineSpec
from tritonforge.spec.load import load_spec


def test_every_kind_of_the_specification_has_a_row() -> None:
    union, _ = get_args(EngineSpec)

    assert {get_args(spec.model_fields["kind"].annotation)[0] for spec in get_args(union)} == set(KINDS)


def test_a_kind_is_compiled_or_takes_the_checkpoint_along() -> None:
    assert all((kind.build is None) != (kind.gather is None) for kind in KINDS.values())


def test_a_tokenizer_that_is_code_is_refused_before_any_work(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, write_chatglm(tmp_path / "checkpoint"), versions="1: {engine: {kind: vllm}}")

    with pytest.raises(UnsupportedModel, match="Python code that comes with it"):
        preview_spec(load_spec(spec), BuildOptions())


@pytest.mark.parametrize(("engine", "release"), [("{kind: vllm}", None), ('{kind: llmapi, release: "1.0.0"}', "1.0.0")])
def test_a_checkpoint_is_taken_along_without_the_cache(
    tiny_llama: Path, tmp_path: Path, engine: str, release: str | None
) -> None:
    result = build(write_spec(tmp_path, tiny_llama, versions=f"1: {{engine: {engine}}}"))

    assert [(version.state, version.cache) for version in result.versions] == [("new", None)]
    published = find_version(tmp_path / "models", "tiny", 1)
    assert published is not None
    assert published.manifest.release == release
    assert (published.folder / "checkpoint" / "model.safetensors").is_file()
    assert not (tmp_path / "models.forge" / "cache").exists()
