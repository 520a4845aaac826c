"""forge.yaml → repository for kind tensorrt_llm, with a stand-in for trtllm-build. No engine is built here."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.pipeline.builds import INT8, build, states, write_spec
from tests.support.checkpoints import write_llama
from tests.support.standin_tool import install_standin
from tritonforge.cli.main import run
from tritonforge.errors import BuildError, CommandFailed, RepositoryError, SpecError, ToolMissing, UnsupportedModel
from tritonforge.pipeline.builder import builder_of
from tritonforge.pipeline.cache_entry import CacheEntry, read_entry, seal
from tritonforge.pipeline.machine import Machine
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.pipeline.preview import Preview, preview_spec
from tritonforge.repository.layout import find_version
from tritonforge.spec.load import load_spec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

LIMITS = "    limits: {max_batch_size: 4, max_input_len: 64, max_seq_len: 128}\n"


def engine(release: str = "0.16.0", **fields: object) -> str:
    block = {"kind": "tensorrt_llm", "release": release, "executor": "local", **fields}
    return f"{{engine: {json.dumps(block)}}}"


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


def spec_of(folder: Path, checkpoint: Path, version: str | None = None, more: str = LIMITS) -> Path:
    return write_spec(folder, checkpoint, versions=f"1: {version or engine()}", more=more)


def preview(spec: Path, **options: object) -> Preview:
    return preview_spec(load_spec(spec), BuildOptions(**options))


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


def test_a_dry_run_shows_the_command_and_its_mounts(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = spec_of(tmp_path, tiny_llama, engine(executor="docker", gpus=[1]))

    assert run(["build", "-f", str(spec), "--dry-run", "--json"]) == 0

    shown = json.loads(capsys.readouterr().out)
    (command,) = shown["commands"]
    assert command["argv"][0] == "trtllm-build"
    assert command["argv"][command["argv"].index("--max_seq_len") + 1] == "128"
    assert command["image"] == "nvcr.io/nvidia/tritonserver:24.12-trtllm-python-py3"
    assert command["gpus"] == [1]
    assert (command["user"], command["shm_bytes"]) == (f"{os.getuid()}:{os.getgid()}", 2 * 2**30)
    checkpoint, out = command["mounts"]
    assert command["argv"][command["argv"].index("--checkpoint_dir") + 1] == checkpoint
    assert command["argv"][command["argv"].index("--output_dir") + 1] == out == command["cwd"]
    assert command["read_only"] == [checkpoint]
    cache = tmp_path / "models.forge" / "cache"
    assert Path(command["mounts"][checkpoint]).is_relative_to(cache / "checkpoints")
    assert Path(command["mounts"][out]).is_relative_to(cache / "engines")
    assert "tiny_engine_v1/config.pbtxt" in shown["files"]
    assert any("GPU architecture is not known" in note for note in shown["notes"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forge.yaml"]


@pytest.mark.parametrize(
    ("executor", "lines"),
    [
        ("local", ["PYTHONUNBUFFERED=1 CUDA_VISIBLE_DEVICES=1 trtllm-build --checkpoint_dir "]),
        (
            "docker",
            [
                f"#   as user {os.getuid()}:{os.getgid()}, with 2 GiB of shared memory",
                "PYTHONUNBUFFERED=1 HOME=/tmp USER=tritonforge LOGNAME=tritonforge trtllm-build --checkpoint_dir ",
            ],
        ),
    ],
)
def test_a_dry_run_shows_all_that_is_set_for_the_command(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], executor: str, lines: list[str]
) -> None:
    spec = spec_of(tmp_path, tiny_llama, engine(executor=executor, gpus=[1]))

    assert run(["build", "-f", str(spec), "--dry-run"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert all(any(found.startswith(line) for found in shown) for line in lines)
    assert any(", GPUs 1, in folder " in found for found in shown)


def test_a_build_names_no_place_that_is_gone_afterwards(tiny_llama: Path, tmp_path: Path, standin: Path) -> None:
    said: list[str] = []

    build(spec_of(tmp_path, tiny_llama), on_event=said.append)

    ours = [line for line in said if not line.startswith(("stand-in", "--"))]
    assert not [line for line in ours if ".partial" in line]


def test_what_is_cached_has_no_command(tiny_llama: Path, tmp_path: Path, standin: Path) -> None:
    spec = spec_of(tmp_path, tiny_llama)
    assert len(preview(spec).commands) == 1
    build(spec)
    second = spec_of(tmp_path, tiny_llama, f"{engine()}\n      2: {engine()}")

    assert preview(second).commands == ()
    assert len(preview(second, use_cache=False).commands) == 1


def test_the_mounts_of_a_dry_run_are_those_of_the_build(tiny_llama: Path, tmp_path: Path, standin: Path) -> None:
    spec = spec_of(tmp_path, tiny_llama)
    (command,) = preview(spec).commands

    build(spec)

    argv = list(command.argv)
    assert (Path(argv[argv.index("--checkpoint_dir") + 1]) / "rank0.safetensors").is_file()
    assert (Path(argv[argv.index("--output_dir") + 1]) / "rank0.engine").is_file()


def refused_in_the_plan(spec: Path, error: type[Exception], match: str) -> None:
    before = sorted(path.name for path in spec.parent.iterdir())
    with pytest.raises(error, match=match):
        preview(spec)
    with pytest.raises(error, match=match):
        build(spec)
    assert sorted(path.name for path in spec.parent.iterdir()) == before


def test_heads_that_do_not_divide_are_refused_before_any_work(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, write_llama(tmp_path / "checkpoint"), engine(tensor_parallel=3))

    refused_in_the_plan(spec, UnsupportedModel, "3")


def test_what_the_release_refuses_of_the_checkpoint_is_refused_before_any_work(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, write_llama(tmp_path / "checkpoint", mlp_bias=True))

    refused_in_the_plan(spec, UnsupportedModel, "bias")


@pytest.mark.parametrize(
    ("scaling", "longest"),
    [(None, 512), ({"rope_type": "linear", "factor": 2.0}, 1024)],
)
def test_sequences_beyond_the_models_positions_are_refused_before_any_work(
    tmp_path: Path, scaling: dict[str, object] | None, longest: int
) -> None:
    checkpoint = write_llama(tmp_path / "checkpoint", max_position=512, rope_scaling=scaling)
    spec = spec_of(tmp_path, checkpoint, more=f"    limits: {{max_seq_len: {longest + 1}}}\n")

    refused_in_the_plan(
        spec,
        BuildError,
        f"max_seq_len is {longest + 1}, expected at most {longest}: the model was trained for {longest} positions",
    )
    assert preview(spec_of(tmp_path, checkpoint, more=f"    limits: {{max_seq_len: {longest}}}\n")).commands


def test_what_is_refused_of_a_version_names_its_place_in_the_specification(tmp_path: Path) -> None:
    checkpoint = write_llama(tmp_path / "checkpoint")
    spec = spec_of(tmp_path, checkpoint, f"{engine()}\n      2: {engine(tensor_parallel=3)}")

    with pytest.raises(UnsupportedModel) as caught:
        preview(spec)

    assert str(caught.value).startswith(f"{spec}:8: models[0].versions.2.engine: {checkpoint} (LlamaForCausalLM) on ")
    assert caught.value.message == str(caught.value)
    assert caught.value.hint == "choose --tp 1, 2 or 4 (tensor_parallel in forge.yaml)"


def test_several_copies_of_an_engine_are_refused_before_any_work(tmp_path: Path) -> None:
    more = LIMITS + "    serving: {instance_group: [{count: 2}]}\n"
    spec = spec_of(tmp_path, write_llama(tmp_path / "checkpoint"), more=more)

    refused_in_the_plan(spec, RepositoryError, "has 2 copies; expected 1")


def test_a_missing_file_of_activation_ranges_is_refused_before_any_work(tmp_path: Path) -> None:
    checkpoint = write_llama(tmp_path / "checkpoint")
    spec = spec_of(tmp_path, checkpoint, engine(precision="fp8", activation_ranges="ranges.json"))

    refused_in_the_plan(spec, Exception, "ranges.json")


def test_a_plugin_of_another_type_than_the_checkpoint_is_refused_before_any_work(tmp_path: Path) -> None:
    spec = spec_of(
        tmp_path,
        write_llama(tmp_path / "checkpoint"),
        engine(precision="int8_weight_only", plugins={"gemm": "bfloat16"}),
    )

    refused_in_the_plan(spec, SpecError, "plugins.gemm is bfloat16")


def test_an_architecture_that_is_not_this_machines_is_refused_before_any_work(tmp_path: Path, gpus) -> None:
    gpus("8.0", "9.0")
    checkpoint = write_llama(tmp_path / "checkpoint")

    refused_in_the_plan(
        spec_of(tmp_path, checkpoint, engine(gpu_architecture="sm_90")), BuildError, "is sm_90, but this machine's GPU"
    )
    refused_in_the_plan(spec_of(tmp_path, checkpoint, engine(tensor_parallel=2)), BuildError, "sm_80, sm_90")
    assert preview(spec_of(tmp_path, checkpoint, engine(gpu_architecture="sm_90", gpus=[1]))).notes == ()


@pytest.mark.parametrize("program", ["#!/bin/sh\nexit 9\n", "#!/bin/sh\necho '0, NVIDIA Old, [N/A]'\n", "no program"])
def test_a_driver_that_does_not_say_is_no_reason_to_refuse(
    tiny_llama: Path, tmp_path: Path, gpus, program: str
) -> None:
    gpus("9.0")
    (tmp_path / "driver" / "nvidia-smi").write_text(program)

    (note,) = preview(spec_of(tmp_path, tiny_llama)).notes

    assert "GPU architecture is not known" in note


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
