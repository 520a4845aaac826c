"""Builds in containers of a real Docker Engine. Their trtllm-build is a stand-in, and writes that it is one."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.docker_builds import Builds, at_line
from tests.support.docker_engine import DockerEngine, can_start, own_engine
from tests.support.trtllm_builds import tensorrt_llm_spec
from tritonforge.artifacts import EngineArtifact
from tritonforge.engine.tensorrt_llm import docker_engine as docker_engine_module
from tritonforge.engine.tensorrt_llm.build import prepare_build
from tritonforge.engine.tensorrt_llm.docker import DockerExecutor
from tritonforge.errors import BuildError, CommandFailed, ContainerError

CALLER = 4711  # a user that neither this machine nor the image knows


@pytest.mark.parametrize("release", ["0.9.0", "0.12.0", "0.16.0", "1.2.1"])
def test_builds_as_each_release_takes_it(builds: Builds, release: str):
    made = builds.run(release=release)

    assert (made.kind, made.files) == ("tensorrt_llm", ("config.json", "rank0.engine"))
    assert "stand-in" in json.loads((made.path / "config.json").read_text())["stand_in"]
    assert "stand-in" in (made.path / "rank0.engine").read_text()


def test_every_rank_is_built_and_every_line_told(builds: Builds):
    lines: list[str] = []
    made = builds.run(tensor_parallel=2, pipeline_parallel=2, env={"STANDIN_LINES": "500"}, on_event=lines.append)

    assert made.files == ("config.json", *(f"rank{rank}.engine" for rank in range(4)))
    assert made.vocab_size == 128
    assert made.weights_bytes == sum(path.stat().st_size for path in made.path.glob("*.engine"))
    assert lines[0].startswith("running trtllm-build in tritonforge-standin:0.16.0 as container tritonforge-build-")
    assert lines[1:] == builds.log.read_text().splitlines()
    assert "[TRT-LLM] [I] building layer 499" in lines


def test_a_build_may_be_silent_for_longer_than_an_engine_may_take_to_answer(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(docker_engine_module, "_ANSWER_S", 1)

    assert builds.run(env={"STANDIN_SILENT_S": "1.5"}).files == ("config.json", "rank0.engine")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_the_files_belong_to_the_caller(builds: Builds):
    def give_away(line: str) -> None:  # the folder that the container is to write into is its user's
        if line.startswith("running "):
            (folder,) = builds.folder.glob(".engine*")
            os.chown(folder, CALLER, CALLER)

    made = builds.run(changes={"user": f"{CALLER}:{CALLER}"}, on_event=give_away)

    assert {(path.stat().st_uid, path.stat().st_gid) for path in made.path.iterdir()} == {(CALLER, CALLER)}


def test_the_checkpoint_cannot_be_written(builds: Builds):
    builds.run(env={"STANDIN_READ_ONLY": "1"})


def test_gpus_are_given_as_asked(builds: Builds):
    if not builds.engine.gives_gpus:
        pytest.skip("this engine gives no GPUs")
    made = builds.run(gpus=(3, 1), tensor_parallel=2)

    assert '"NVIDIA_VISIBLE_DEVICES": "3,1"' in (made.path / "rank0.engine").read_text()


def test_an_engine_without_nvidias_runtime_says_what_to_install(tmp_path: Path):
    if not can_start():
        pytest.skip("no engine of our own can be started")
    with own_engine(gives_gpus=False) as engine:
        builds = Builds(engine, tmp_path)
        with pytest.raises(
            ContainerError, match="could not start the container: it cannot give a container GPUs"
        ) as caught:
            builds.run(changes={"gpus": "all"})
        assert "nvidia-ctk runtime configure" in (caught.value.hint or "")
        assert engine.containers() == []
        assert builds.left() == ["build.log", "checkpoint"]


def test_a_refused_option_shows_what_argparse_says(builds: Builds):
    with pytest.raises(CommandFailed, match="unrecognized arguments: --max_output_len 64") as caught:
        builds.run(release="0.9.0", image=builds.engine.standin("0.16.0"), env={"STANDIN_SAYS": "0.9.0"})
    assert caught.value.returncode == 2
    assert "another release than engine.release" in (caught.value.hint or "")


def test_a_failure_shows_the_last_lines_the_code_and_the_log(builds: Builds):
    with pytest.raises(CommandFailed) as caught:
        builds.run(env={"STANDIN_LINES": "3000", "STANDIN_FAIL": "[Errno 28] No space left on device"})
    error = caught.value
    assert str(error).startswith(f"trtllm-build exited with 1; full log: {builds.log}; last lines:\n")
    assert error.tail[-1] == "RuntimeError: [Errno 28] No space left on device"
    assert "free disk space" in (error.hint or "")
    assert len(error.tail) == 20
    assert sum("building layer" in line for line in builds.log.read_text().splitlines()) == 3000
    assert builds.left() == ["build.log", "checkpoint"]


def test_an_image_of_another_release_is_stopped_as_soon_as_it_says_so(builds: Builds):
    with pytest.raises(BuildError, match=r"trtllm-build is of TensorRT-LLM 0\.16\.0; expected 0\.17\.0") as caught:
        builds.run(release="0.17.0", image=builds.engine.standin("0.16.0"), env={"STANDIN_HANG": "1"})
    assert "engine.image" in (caught.value.hint or "")
    assert builds.left() == ["build.log", "checkpoint"]


@pytest.mark.parametrize("code", [1, 3, 42])
def test_exit_codes_are_kept(builds: Builds, code: int):
    with pytest.raises(CommandFailed) as caught:
        builds.run(env={"STANDIN_EXIT": str(code)})
    assert caught.value.returncode == code


def test_an_image_that_is_not_there_is_not_pulled(builds: Builds):
    with pytest.raises(
        ContainerError, match="the image registry.invalid/trtllm:1 is not on the Docker Engine"
    ) as caught:
        builds.run(image="registry.invalid/trtllm:1")
    assert (caught.value.hint or "").startswith("docker pull registry.invalid/trtllm:1, or tritonforge build --pull")
    assert not builds.log.exists()


def test_what_is_missing_is_known_before_anything_is_done(docker_engine: DockerEngine):
    executor = DockerExecutor(address=docker_engine.address)
    prepare_build(tensorrt_llm_spec(image=docker_engine.standin("0.16.0")), executor=executor)
    with pytest.raises(ContainerError, match=r"tritonserver:24\.12-trtllm-python-py3 is not on the Docker Engine"):
        prepare_build(tensorrt_llm_spec(), executor=executor)


def test_an_image_without_trtllm_build_says_so(builds: Builds):
    with pytest.raises(CommandFailed, match="exited with 127") as caught:
        builds.run(env={"PATH": "/nowhere"})
    assert f"see whether {builds.engine.standin('0.16.0')} has trtllm-build" in (caught.value.hint or "")


def test_two_at_once_do_not_meet(builds: Builds, tmp_path: Path):
    both = threading.Barrier(2, timeout=60)

    def build(number: int) -> EngineArtifact:
        one = Builds(builds.engine, tmp_path / str(number))
        one.folder.mkdir()
        return one.run(env={"STANDIN_LINES": "1"}, on_event=at_line("[TRT-LLM] [I] building layer 0", both.wait))

    builds.engine.standin("0.16.0")
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(build, range(2)))
    assert [one.path for one in made] == [tmp_path / "0" / "engine", tmp_path / "1" / "engine"]
