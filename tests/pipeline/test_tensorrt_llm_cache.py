"""What engines of kind tensorrt_llm are kept by in the build cache, with a stand-in for trtllm-build."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.builds import build
from tests.pipeline.tensorrt_llm_builds import engine, preview, spec_of
from tritonforge.cli.main import run
from tritonforge.errors import RepositoryError
from tritonforge.pipeline.builder import builder_of
from tritonforge.pipeline.cache_entry import CacheEntry, read_entry, seal
from tritonforge.pipeline.machine import Machine
from tritonforge.repository.layout import find_version
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec


def other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "other")


def engine_lines(spec: Path, cache: Path) -> list[str]:
    """What a build says of its engine and the cache."""
    said: list[str] = []
    build(spec, on_event=said.append, cache=cache)
    return [line for line in said if line.startswith("tiny version 1: engine: ")]


def repositories(tmp_path: Path, checkpoint: Path, version: str) -> tuple[Path, Path]:
    """Two specifications of the same, each with a repository of its own."""
    folders = (tmp_path / "first", tmp_path / "second")
    for folder in folders:
        folder.mkdir()
    return spec_of(folders[0], checkpoint, version), spec_of(folders[1], checkpoint, version)


def test_an_engine_for_a_gpu_that_nobody_knows_is_shared_on_its_machine_only(
    tiny_llama: Path, tmp_path: Path, standin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = repositories(tmp_path, tiny_llama, engine())
    engine_lines(first, tmp_path / "shared")
    (preview_here,) = preview(second, cache=tmp_path / "shared").cache

    assert preview_here.hit
    assert "gpu_architecture unknown (this machine)" in preview_here.reason
    other_machine(monkeypatch)
    (line,) = engine_lines(second, tmp_path / "shared")
    assert "engine: not from the build cache: " in line
    assert "gpu_architecture unknown (machine " in line


def test_an_engine_for_a_gpu_that_the_spec_names_is_shared_between_machines(
    tiny_llama: Path, tmp_path: Path, standin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_tensorrt(standin, "10.7.0")
    first, second = repositories(tmp_path, tiny_llama, engine(gpu_architecture="sm_90"))
    engine_lines(first, tmp_path / "shared")
    other_machine(monkeypatch)

    (line,) = engine_lines(second, tmp_path / "shared")

    assert "engine: from the build cache: " in line
    assert "unknown" not in line


def add_tensorrt(standin: Path, version: str) -> None:
    """Metadata of a TensorRT package beside the stand-in's."""
    for old in (standin.parent / "packages").glob("tensorrt-*"):
        old.rename(old.with_name("was"))
    metadata = standin.parent / "packages" / f"tensorrt-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: tensorrt\nVersion: {version}\n")


def test_what_is_installed_here_is_in_the_key_and_in_the_manifest(
    tiny_llama: Path, tmp_path: Path, standin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_tensorrt(standin, "10.7.0")
    build(spec_of(tmp_path, tiny_llama))
    published = find_version(tmp_path / "models", "tiny", 1)
    assert published is not None
    assert dict(published.manifest.tools).items() >= {"tensorrt_llm": "0.16.0", "tensorrt": "10.7.0"}.items()

    add_tensorrt(standin, "10.8.0")
    spec = spec_of(tmp_path, tiny_llama, f"{engine()}\n      2: {engine()}")
    assert run(["build", "-f", str(spec), "--version", "2", "--dry-run", "--explain"]) == 0
    assert "    tensorrt 10.7.0 → 10.8.0" in capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("image", "tools"),
    [
        (None, {"image": "nvcr.io/nvidia/tritonserver:24.05-trtllm-python-py3", "tensorrt": "10.0.1.6"}),
        (
            "nvcr.io/nvidia/tritonserver:24.04-trtllm-python-py3",
            {"image": "nvcr.io/nvidia/tritonserver:24.04-trtllm-python-py3", "tensorrt": "9.3.0.post12.dev1"},
        ),
        ("registry/own:1", {"image": "registry/own:1"}),
    ],
)
def test_the_container_that_compiles_goes_into_the_manifest(image: str | None, tools: dict[str, str]) -> None:
    spec = TensorRtLlmEngineSpec(kind="tensorrt_llm", release="0.9.0", image=image)

    assert builder_of(spec, Machine()).tools == {"tensorrt_llm": "0.9.0", **tools}


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (engine("0.17.0"), "release 0.16.0 → 0.17.0"),
        (engine(plugins={"gemm": "disable"}), "trtllm-build.gemm_plugin auto → disable"),
        (engine(precision="int8_weight_only"), "conversion.precision none → int8_weight_only"),
        (engine(gpu_architecture="sm_90"), f"gpu_architecture {Machine().unknown} → sm_90"),
        (engine(executor="docker", image="registry/own:1"), "builder local → registry/own:1"),
    ],
)
def test_a_miss_names_what_changed(
    tiny_llama: Path, tmp_path: Path, standin: Path, capsys: pytest.CaptureFixture[str], change: str, phrase: str
) -> None:
    build(spec_of(tmp_path, tiny_llama))

    spec = spec_of(tmp_path, tiny_llama, change)
    assert run(["build", "-f", str(spec), "--dry-run", "--explain", "--replace"]) == 0

    assert f"    {phrase}" in capsys.readouterr().err.splitlines()


def test_versions_that_differ_in_the_engine_convert_once(tiny_llama: Path, tmp_path: Path, standin: Path) -> None:
    said: list[str] = []
    second = engine(plugins={"paged_context_fmha": True})

    build(spec_of(tmp_path, tiny_llama, f"{engine()}\n      2: {second}"), on_event=said.append)

    assert sum(line.startswith("converting") for line in said) == 1


def test_kinds_that_need_the_same_checkpoint_convert_once(tiny_llama: Path, tmp_path: Path, standin: Path) -> None:
    said: list[str] = []
    cpu = "{engine: {kind: openvino, precision: float16, runtime: {kv_cache_gib: 0.1}}}"

    build(spec_of(tmp_path, tiny_llama, f"{engine()}\n      2: {cpu}"), on_event=said.append)

    assert sum(line.startswith("converting") for line in said) == 1
    assert "tiny version 2: engine: not from the build cache: nothing of its kind is there yet" in said


def test_an_engine_of_another_release_in_the_cache_is_refused_with_both(
    tiny_llama: Path, tmp_path: Path, standin: Path
) -> None:
    spec = spec_of(tmp_path, tiny_llama)
    build(spec)
    (record,) = (tmp_path / "models.forge" / "cache" / "engines").glob("*/entry.json")
    config = record.parent / "files" / "config.json"
    config.chmod(0o644)
    config.write_text(config.read_text().replace('"version": "0.16.0"', '"version": "0.17.0"'))
    entry = read_entry(record.parent)
    assert isinstance(entry, CacheEntry)
    seal(record.parent, entry.key, made_for="tiny version 1", took_s=0.0, about=entry.about)

    with pytest.raises(RepositoryError, match=r"built by TensorRT-LLM 0\.17\.0; expected 0\.16\.0"):
        build(spec_of(tmp_path, tiny_llama, engine(workers=2)), replace=True)
