from pathlib import Path

import pytest

from tests.support.docker_engine import DockerEngine
from tests.support.standin_tool import install_standin
from tritonforge.checks import INFO, OK
from tritonforge.engine.tensorrt_llm.doctor import _runtime, examine_builders


def test_what_is_missing_is_no_failure(tmp_path: Path):
    docker, program = examine_builders(docker_address=f"unix://{tmp_path}/none", search_path=str(tmp_path))

    assert (docker.name, docker.status) == ("docker", INFO)
    assert "does not run" in docker.detail
    assert docker.fix.startswith("to build TensorRT-LLM engines in containers: start Docker")
    assert (program.name, program.status) == ("trtllm-build", INFO)
    assert program.fix.startswith("to build with executor: local: activate the environment")


def test_what_is_there_is_said_with_its_version(docker_engine: DockerEngine, tmp_path: Path):
    folder = install_standin(tmp_path / "env", "1.0.0")
    docker, _, program = examine_builders(docker_address=docker_engine.address, search_path=folder)

    assert (docker.status, program.status) == (OK, OK)
    assert docker.detail.endswith(f" at {docker_engine.address}")
    assert program.detail == f"1.0.0 at {folder}/trtllm-build"


def test_a_program_of_unknown_origin_is_said(tmp_path: Path):
    (tmp_path / "trtllm-build").write_bytes(b"\x7fELF")
    (tmp_path / "trtllm-build").chmod(0o755)
    program = examine_builders(docker_address=f"unix://{tmp_path}/none", search_path=str(tmp_path))[-1]

    assert (program.status, "cannot tell" in program.detail) == (INFO, True)


def test_an_engine_with_nvidias_runtime_can_give_gpus():
    assert _runtime({"Runtimes": {"nvidia": {}, "runc": {}}}).status == OK


def test_an_engine_without_it_says_what_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    check = _runtime({"Runtimes": {"runc": {}, "crun": {}}})

    assert (check.status, check.detail) == (INFO, "the Docker Engine has no nvidia runtime (crun, runc)")
    assert "nvidia-ctk" in check.fix


def test_a_gpu_by_cdi_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {"Runtimes": {"runc": {}}, "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}]}
    assert _runtime(found).status == OK
    other = {"Runtimes": {"runc": {}}, "DiscoveredDevices": [{"Source": "cdi", "ID": "vendor.com/net=0"}]}
    assert _runtime(other).status == INFO


def test_the_programs_hook_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "nvidia-container-runtime-hook").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert _runtime({}).status == OK
