"""Kind tensorrt_llm before any work: what a dry run shows, and what is refused. No engine is built here."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.pipeline.builds import build
from tests.pipeline.tensorrt_llm_builds import LIMITS, engine, preview, spec_of
from tests.support.checkpoints import write_llama
from tritonforge.cli.main import run
from tritonforge.errors import BuildError, RepositoryError, SpecError, UnsupportedModel


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
