import os
from pathlib import Path

import pytest

from tests.support.trtllm_builds import LIMITS, tensorrt_llm_spec
from tritonforge.engine.tensorrt_llm.command import BuildCommand, Mount, plan_command
from tritonforge.errors import SpecError
from tritonforge.releases.table import all_releases


def planned(**fields: object) -> BuildCommand:
    return plan_command(
        tensorrt_llm_spec(**fields), LIMITS, dtype="float16", checkpoint=Path("/data/checkpoint"), out=Path("/data/out")
    )


def value_of(command: BuildCommand, option: str) -> str:
    return command.argv[command.argv.index(option) + 1]


def test_a_container_sees_the_checkpoint_read_only_and_the_engine_folder():
    command = planned(executor="docker")

    assert command.mounts == (
        Mount(Path("/data/checkpoint"), "/tritonforge/checkpoint", read_only=True),
        Mount(Path("/data/out"), "/tritonforge/engine", read_only=False),
    )
    assert value_of(command, "--checkpoint_dir") == "/tritonforge/checkpoint"
    assert value_of(command, "--output_dir") == "/tritonforge/engine"
    assert command.cwd == "/tritonforge/engine"


def test_a_container_runs_as_the_caller_with_a_home():
    command = planned(executor="docker")

    assert command.user == f"{os.getuid()}:{os.getgid()}"
    named = {"HOME": "/tmp", "USER": "tritonforge", "LOGNAME": "tritonforge"}
    assert command.env == {"PYTHONUNBUFFERED": "1", **named}
    assert command.shm_bytes >= 2**30


@pytest.mark.parametrize("release", [release.name for release in all_releases()])
def test_the_image_is_the_newest_of_the_release(release: str):
    newest = next(one for one in all_releases() if one.name == release).containers[-1]

    assert planned(release=release).image == newest.image


def test_the_spec_may_name_another_image():
    assert planned(image="registry.example/trtllm:mine").image == "registry.example/trtllm:mine"


def test_gpus_are_those_of_the_spec_or_all():
    assert planned().gpus == "all"
    assert planned(gpus=(0, 2), tensor_parallel=2).gpus == (0, 2)


def test_the_local_program_sees_this_machine():
    command = planned(executor="local", gpus=(1, 3), tensor_parallel=2)

    assert (command.image, command.mounts, command.user) == (None, (), "")
    assert value_of(command, "--checkpoint_dir") == "/data/checkpoint"
    assert value_of(command, "--output_dir") == command.cwd == "/data/out"
    assert command.env == {"PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": "1,3"}


def test_relative_folders_are_made_absolute():
    command = plan_command(
        tensorrt_llm_spec(executor="local"), LIMITS, dtype="float16", checkpoint=Path("in"), out=Path("out")
    )

    assert value_of(command, "--checkpoint_dir") == str(Path.cwd() / "in")
    assert command.cwd == str(Path.cwd() / "out")


def test_an_unknown_release_is_refused():
    with pytest.raises((SpecError, ValueError), match=r"0\.1\.0"):
        planned(release="0.1.0")
