"""What an engine needs, read from its manifest and its files, also when somebody else wrote them."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.pipeline.builds import build, write_spec
from tritonforge.pipeline.compatibility import Advice, EngineNeeds, ServerFacts, check_needs
from tritonforge.pipeline.needs import needs_of
from tritonforge.repository.layout import PublishedVersion, find_version
from tritonforge.repository.manifest import MANIFEST_NAME

NEEDS = EngineNeeds(
    "tiny",
    2,
    "tensorrt_llm",
    backend="tensorrtllm",
    release="0.16.0",
    gpu_architecture="sm_90",
    gpus=(1,),
    mount="/models",
    tensorrt="10.7.0",
)


def found_again(version: PublishedVersion) -> PublishedVersion:
    found = find_version(version.folder.parents[1], version.model, version.number)
    assert found is not None
    return found


def test_needs_are_read_from_what_is_published(published: PublishedVersion) -> None:
    assert needs_of(published) == NEEDS


@pytest.mark.parametrize(
    "path", ["/x", "x", "", "/", "/models/other_engine_v2/2", "tiny_engine_v2/2", "${engine_dir}", "/models/2"]
)
def test_an_engine_that_is_told_another_place_says_nothing_of_the_mount(published: PublishedVersion, path: str) -> None:
    config = published.folder.parent / "config.pbtxt"
    config.write_text(config.read_text().replace("/models/tiny_engine_v2/2", path))

    assert needs_of(published) == replace(NEEDS, mount=None)


@pytest.mark.parametrize(
    "settings",
    [
        {"gpus": 3},
        {"gpus": "all"},
        {"gpus": ["0"]},
        {"gpus": [True]},
        {"gpus": [-1]},
        {"tensor_parallel": "two"},
        {"tensor_parallel": None},
        {"pipeline_parallel": [2]},
        {"tensor_parallel": 0},
        {"tensor_parallel": 10**12},
        {"tensor_parallel": 1.5},
    ],
    ids=str,
)
def test_gpus_that_are_none_are_not_known_and_judged_nowhere(
    published: PublishedVersion, settings: dict[str, object]
) -> None:
    path = published.folder / MANIFEST_NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | {"settings": {"engine": settings}}))

    needs = needs_of(found_again(published))

    assert (needs.gpus, needs.ranks, needs.gpu_architecture) == ((), 1, None)
    (note,) = check_needs(needs, ServerFacts(triton="2.53.0"), Advice(Path("/srv/models")))
    assert "for which GPU it is compiled is not known" in note


@pytest.mark.parametrize("settings", [{"engine": 3}, {"engine": {"image": 7, "gpus": None}}, {}], ids=str)
def test_settings_of_other_types_say_nothing(published: PublishedVersion, settings: dict[str, object]) -> None:
    path = published.folder / MANIFEST_NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | {"settings": settings, "tools": {"tensorrt": 10}}))

    assert needs_of(found_again(published)) == replace(NEEDS, gpus=(), tensorrt=None)


TEXT_KINDS = [("{engine: {kind: vllm}}", "model.json"), ('{engine: {kind: llmapi, release: "1.0.0"}}', "model.yaml")]


@pytest.mark.parametrize(("version", "file"), TEXT_KINDS)
def test_the_mount_of_engines_that_take_text_is_in_the_command_that_starts_them(
    tiny_llama: Path, tmp_path: Path, version: str, file: str
) -> None:
    spec = write_spec(tmp_path, tiny_llama, versions=f"1: {version}")
    spec.write_text(spec.read_text().replace("repository:", "mount: /srv/seen\nrepository:"))

    (command,) = build(spec).start

    words = shlex.split(command, comments=True)
    assert words[words.index("-v") + 1] == f"{tmp_path / 'models'}:/srv/seen:ro"
    assert words[words.index("--model-repository") + 1] == "/srv/seen"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"model": 3}', '{"model": "meta-llama/Llama-3.2-1B"}', '{"model": "/checkpoint"}', "[" * 9999]
    + ["!!int ''", "\0", "? [a]\n: b"],
)
@pytest.mark.parametrize(("version", "file"), TEXT_KINDS)
def test_arguments_that_somebody_else_wrote(
    tiny_llama: Path, tmp_path: Path, version: str, file: str, text: str
) -> None:
    build(write_spec(tmp_path, tiny_llama, versions=f"1: {version}"))
    published = find_version(tmp_path / "models", "tiny", 1)
    assert published is not None
    (published.folder / file).write_text(text)

    assert needs_of(published).mount is None
