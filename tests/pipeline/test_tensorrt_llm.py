"""forge.yaml → repository for kind tensorrt_llm, with a stand-in for trtllm-build. No engine is built here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.builds import INT8, build, states
from tests.pipeline.tensorrt_llm_builds import engine, spec_of
from tritonforge.errors import BuildError, CommandFailed, ToolMissing
from tritonforge.repository.layout import find_version


def test_the_whole_way(tiny_llama: Path, tmp_path: Path, standin: Path, gpus) -> None:
    gpus("9.0")
    said: list[str] = []

    result = build(spec_of(tmp_path, tiny_llama), on_event=said.append)

    assert states(result) == {1: "new"}
    folder = tmp_path / "models" / "tiny_engine_v1" / "1"
    assert "stand-in" in (folder / "rank0.engine").read_text()
    assert 'backend: "tensorrtllm"' in (folder.parent / "config.pbtxt").read_text()
    published = find_version(tmp_path / "models", "tiny", 1)
    assert published is not None
    manifest = published.manifest
    assert (manifest.kind, manifest.release, manifest.gpu_architecture) == ("tensorrt_llm", "0.16.0", "sm_90")
    assert manifest.tools["tensorrt_llm"] == "0.16.0"
    assert set(manifest.files) == {"config.json", "rank0.engine"}
    assert (tmp_path / "models" / "tiny" / "1" / "versions" / "1" / "tokenizer.json").is_file()
    assert "stand-in" in (tmp_path / "models.forge" / "logs" / "tiny-v1-engine.log").read_text()


def test_a_second_build_runs_nothing(tiny_llama: Path, tmp_path: Path, standin: Path) -> None:
    spec = spec_of(tmp_path, tiny_llama)
    build(spec)
    (standin / "trtllm-build").unlink()
    runtime = engine(runtime={"kv_cache_free_gpu_mem_fraction": 0.5}, workers=2, options={"log_level": "verbose"})

    result = build(spec_of(tmp_path, tiny_llama, runtime), replace=True)

    assert [(version.state, version.cache) for version in result.versions] == [("changed", "hit")]
    assert '"0.5"' in (tmp_path / "models" / "tiny_engine_v1" / "config.pbtxt").read_text()


def test_a_build_names_no_place_that_is_gone_afterwards(tiny_llama: Path, tmp_path: Path, standin: Path) -> None:
    said: list[str] = []

    build(spec_of(tmp_path, tiny_llama), on_event=said.append)

    ours = [line for line in said if not line.startswith(("stand-in", "--"))]
    assert not [line for line in ours if ".partial" in line]


def test_a_failed_compilation_shows_its_log_and_leaves_only_the_checkpoint_in_the_cache(
    tiny_llama: Path, tmp_path: Path, standin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_FAIL", "out of GPU memory")

    with pytest.raises(CommandFailed, match="out of GPU memory") as caught:
        build(spec_of(tmp_path, tiny_llama))

    assert caught.value.log == tmp_path / "models.forge" / "logs" / "tiny-v1-engine.log"
    assert not list((tmp_path / "models").glob("*"))
    assert [path.parent.parent.name for path in tmp_path.glob("models.forge/cache/*/*/entry.json")] == ["checkpoints"]
    assert not list(tmp_path.rglob("*.partial"))


def test_without_trtllm_build_the_missing_tool_is_named_before_any_version_is_begun(
    tiny_llama: Path, tmp_path: Path
) -> None:
    said: list[str] = []

    with pytest.raises(ToolMissing, match="trtllm-build"):
        build(spec_of(tmp_path, tiny_llama, f"{INT8}\n      2: {engine()}"), on_event=said.append)

    assert said == []


def test_a_trtllm_build_of_another_release_is_found_before_the_conversion(
    tiny_llama: Path, tmp_path: Path, standin: Path
) -> None:
    said: list[str] = []

    with pytest.raises(BuildError, match=r"0\.16\.0; expected 0\.17\.0"):
        build(spec_of(tmp_path, tiny_llama, engine("0.17.0")), on_event=said.append)

    assert not any(line.startswith("converting") for line in said)

    assert not list(tmp_path.rglob("rank0.safetensors")), "nothing was converted for it"


def test_both_kinds_in_one_model(tiny_llama: Path, tmp_path: Path, standin: Path) -> None:
    result = build(spec_of(tmp_path, tiny_llama, f"{engine()}\n      2: {INT8}"))

    assert states(result) == {1: "new", 2: "new"}
