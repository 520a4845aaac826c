from dataclasses import replace
from pathlib import Path

import pytest

from tritonforge.engine.tensorrt_llm.command import BuildCommand, Mount
from tritonforge.engine.tensorrt_llm.container import EngineTraits, container_options

COMMAND = BuildCommand(
    argv=("trtllm-build", "--workers", "1"),
    cwd="/out",
    image="image:1",
    mounts=(Mount(Path("/a"), "/in", read_only=True), Mount(Path("/b"), "/out", read_only=False)),
    gpus="all",
    shm_bytes=2**30,
    user="1000:1000",
    env={"HOME": "/tmp"},
)


def options(command: BuildCommand = COMMAND, traits: EngineTraits | None = None) -> dict:
    return container_options(command, traits or EngineTraits(), name="name", labels={"a": "b"})


def test_the_command_becomes_a_container():
    made = options()

    assert made["image"] == "image:1"
    assert made["command"] == ["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", "trtllm-build", "--workers", "1"]
    assert (made["user"], made["working_dir"], made["environment"]) == ("1000:1000", "/out", {"HOME": "/tmp"})
    assert (made["name"], made["labels"], made["shm_size"]) == ("name", {"a": "b"}, 2**30)
    assert made["mounts"] == [
        {"Target": "/in", "Source": "/a", "Type": "bind", "ReadOnly": True},
        {"Target": "/out", "Source": "/b", "Type": "bind", "ReadOnly": False},
    ]
    assert "entrypoint" not in made  # NVIDIA's sets up the libraries of the driver


def test_all_gpus_are_asked_for_by_a_count():
    (request,) = options()["device_requests"]

    assert request == {"Driver": "", "Count": -1, "DeviceIDs": [], "Capabilities": [["gpu"]], "Options": {}}


def test_some_gpus_are_asked_for_by_their_ids():
    (request,) = options(replace(COMMAND, gpus=(0, 2)))["device_requests"]

    assert request == {"Driver": "", "Count": 0, "DeviceIDs": ["0", "2"], "Capabilities": [["gpu"]], "Options": {}}


def test_no_gpu_asks_for_none():
    assert options(replace(COMMAND, gpus=None))["device_requests"] == []


@pytest.mark.parametrize(
    ("said", "traits"),
    [
        (["name=seccomp,profile=default"], EngineTraits()),
        (["name=seccomp,profile=default", "name=rootless"], EngineTraits(rootless=True)),
        (["name=userns"], EngineTraits(maps_users=True)),
        (["name=apparmor", "name=selinux"], EngineTraits(labels_files=True)),
    ],
)
def test_the_engine_says_what_it_does_with_users_and_files(said: list[str], traits: EngineTraits):
    assert EngineTraits.from_security_options(said) == traits


def test_root_of_a_rootless_engine_is_the_caller():
    made = options(traits=EngineTraits(rootless=True))

    assert made["user"] == "0:0"
    assert "ulimits" not in made  # it may not raise them


def test_ids_are_not_mapped():
    assert options(traits=EngineTraits(maps_users=True))["userns_mode"] == "host"
    assert "userns_mode" not in options()


def test_file_labels_do_not_keep_the_container_out():
    assert options(traits=EngineTraits(labels_files=True))["security_opt"] == ["label=disable"]
    assert "security_opt" not in options()
