"""What is checked before and after trtllm-build, with a stand-in for it that runs on this machine."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.full_disk import file_size_limit
from tests.support.standin_tool import install_standin
from tests.support.trtllm_builds import LIMITS, Adapted, empty_checkpoint, tensorrt_llm_spec
from tritonforge.artifacts import EngineArtifact
from tritonforge.engine.tensorrt_llm.build import build_engine
from tritonforge.engine.tensorrt_llm.command import BuildCommand
from tritonforge.engine.tensorrt_llm.docker import DockerExecutor
from tritonforge.engine.tensorrt_llm.executor import executor_for
from tritonforge.engine.tensorrt_llm.local import LocalExecutor
from tritonforge.errors import BuildError, CheckpointNotFound, CommandFailed
from tritonforge.events import OnEvent
from tritonforge.spec.limits import LimitsSpec


def build(
    folder: Path,
    *,
    limits: LimitsSpec = LIMITS,
    ranks: int = 1,
    release: str = "0.16.0",
    executor: type[LocalExecutor] = LocalExecutor,
    **env: str,
) -> EngineArtifact:
    """A build of as many tensor-parallel ranks; a checkpoint that is there is taken."""
    spec = tensorrt_llm_spec(executor="local", tensor_parallel=ranks, release=release)
    checkpoint = empty_checkpoint(folder / "checkpoint", tp=ranks)
    runs = Adapted(executor(release, search_path=install_standin(folder / "env", release)), env=env)
    log = folder / "build.log"
    return build_engine(spec, checkpoint, folder / "engine", limits=limits, log=log, executor=runs)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("release", ["0.9.0", "0.10.0", "0.11.0", "0.17.0.post1", "1.0.0"])
def test_limits_are_those_asked_for_in_every_form(tmp_path: Path, release: str):
    limits = LimitsSpec(max_batch_size=8, max_input_len=100, max_seq_len=300, max_num_tokens=512, max_beam_width=2)
    made = build(tmp_path, limits=limits, release=release)

    built = json.loads((made.path / "config.json").read_text())["build_config"]
    assert built.get("max_seq_len", built["max_input_len"] + built.get("max_output_len", 0)) == 300
    assert (built["max_batch_size"], built["max_num_tokens"], built["max_beam_width"]) == (8, 512, 2)


def test_an_engine_takes_the_place_of_the_one_before(tmp_path: Path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "old").touch()

    assert left(build(tmp_path).path) == ["config.json", "rank0.engine"]


def test_a_failed_build_keeps_the_engine_before(tmp_path: Path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "old").touch()

    with pytest.raises(CommandFailed):
        build(tmp_path, STANDIN_EXIT="1")
    assert left(tmp_path / "engine") == ["old"]


def test_a_build_that_says_nothing_says_so(tmp_path: Path):
    executor = Adapted(LocalExecutor("0.16.0", search_path=install_standin(tmp_path / "env")))
    (tmp_path / "env" / "bin" / "trtllm-build").write_text(f"#!{tmp_path}/env/bin/python3\nraise SystemExit(5)\n")
    with pytest.raises(CommandFailed, match="trtllm-build exited with 5; full log: .*; it wrote nothing"):
        build_engine(
            tensorrt_llm_spec(executor="local"),
            empty_checkpoint(tmp_path / "checkpoint"),
            tmp_path / "engine",
            limits=LIMITS,
            log=tmp_path / "log",
            executor=executor,
        )


def test_an_engine_of_another_release_is_refused(tmp_path: Path):
    with pytest.raises(BuildError, match=r"the engine is of TensorRT-LLM 0\.16\.0\.dev1; expected 0\.16\.0") as caught:
        build(tmp_path, STANDIN_VERSION="0.16.0.dev1")
    assert f"log: {tmp_path / 'build.log'}" in str(caught.value)
    assert left(tmp_path) == ["build.log", "checkpoint", "env"]


def test_other_limits_are_all_named(tmp_path: Path):
    changed = json.dumps({"max_batch_size": 1, "max_seq_len": 100})
    with pytest.raises(BuildError, match="max_batch_size is 1, expected 4; max_seq_len is 100, expected 128"):
        build(tmp_path, STANDIN_BUILD_CONFIG=changed)
    assert left(tmp_path) == ["build.log", "checkpoint", "env"]


def test_a_release_may_choose_the_tokens_of_a_step_that_nobody_asked_for(tmp_path: Path):
    assert build(tmp_path, STANDIN_BUILD_CONFIG='{"max_num_tokens": 7}').files == ("config.json", "rank0.engine")


def test_tokens_of_a_step_that_can_never_come_may_be_left_out(tmp_path: Path):
    limits = LimitsSpec(max_batch_size=2, max_input_len=8, max_seq_len=16, max_num_tokens=8192)
    assert build(tmp_path, limits=limits, STANDIN_BUILD_CONFIG='{"max_num_tokens": 32}').files


def test_fewer_tokens_of_a_step_than_asked_for_are_refused(tmp_path: Path):
    limits = LimitsSpec(max_batch_size=2, max_input_len=8, max_seq_len=16, max_num_tokens=32)
    with pytest.raises(BuildError, match="max_num_tokens is 31, expected 32"):
        build(tmp_path, limits=limits, STANDIN_BUILD_CONFIG='{"max_num_tokens": 31}')


def test_a_rank_that_was_not_built_is_named(tmp_path: Path):
    with pytest.raises(BuildError, match=r"rank1\.engine: no such file; expected the engines of 2 ranks"):
        build(tmp_path, ranks=2, STANDIN_SKIP_RANK="1")
    assert left(tmp_path) == ["build.log", "checkpoint", "env"]


def leaves(change: Callable[[Path], object]) -> type[LocalExecutor]:
    """An executor whose trtllm-build changes its engine folder at its end."""

    class Leaves(LocalExecutor):
        def run(self, command: BuildCommand, *, log: Path, on_event: OnEvent) -> None:
            super().run(command, log=log, on_event=on_event)
            change(next(folder for folder in log.parent.glob(".engine.*.partial")))

    return Leaves


@pytest.mark.parametrize(
    ("change", "name"),
    [
        pytest.param(lambda made: os.mkfifo(made / "pipe"), "pipe", id="pipe"),
        pytest.param(lambda made: (made / "more").symlink_to("/nowhere"), "more", id="link to nothing"),
        pytest.param(lambda made: (made / "more").symlink_to("rank0.engine"), "more", id="link"),
        pytest.param(lambda made: Path(os.fsdecode(bytes(made) + b"/a\xff")).touch(), r"a\xff", id="no UTF-8"),
    ],
)
def test_what_cannot_be_kept_and_published_is_refused(tmp_path: Path, change: Callable[[Path], object], name: str):
    expected = f"made {name}; expected ordinary files with names in UTF-8 (log: {tmp_path / 'build.log'})"
    with pytest.raises(BuildError, match=re.escape(expected)):
        build(tmp_path, executor=leaves(change))
    assert left(tmp_path) == ["build.log", "checkpoint", "env"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(lambda made: (made / "config.json").unlink(), r": has no config\.json", id="no config"),
        pytest.param(lambda made: (made / "config.json").write_text("{"), r"/config\.json: ", id="half a config"),
        pytest.param(lambda made: (made / "rank0.engine").write_bytes(b""), r"/rank0\.engine: is empty", id="empty"),
    ],
)
def test_what_is_no_engine_names_the_log_and_no_passing_folder(
    tmp_path: Path, change: Callable[[Path], object], said: str
):
    expected = f"trtllm-build ended without an error, but the engine folder{said}.* \\(log: {tmp_path}/build\\.log\\)"
    with pytest.raises(BuildError, match=expected) as caught:
        build(tmp_path, executor=leaves(change))
    assert ".partial" not in str(caught.value)


def test_a_checkpoint_without_a_rank_is_refused_before_anything_runs(tmp_path: Path):
    checkpoint = empty_checkpoint(tmp_path / "checkpoint", tp=2)
    (checkpoint.path / "rank1.safetensors").unlink()
    spec = tensorrt_llm_spec(executor="local", tensor_parallel=2)

    with pytest.raises(CheckpointNotFound, match=r"rank1\.safetensors: no such file; expected .* 2 ranks"):
        build_engine(spec, checkpoint, tmp_path / "engine", limits=LIMITS, log=tmp_path / "build.log")
    assert left(tmp_path) == ["checkpoint"]


def test_a_checkpoint_of_other_ranks_is_refused(tmp_path: Path):
    checkpoint = empty_checkpoint(tmp_path / "checkpoint", tp=2)
    with pytest.raises(BuildError, match=r"is split into 2 × 1 ranks .*; expected 1 × 2"):
        build_engine(
            tensorrt_llm_spec(pipeline_parallel=2), checkpoint, tmp_path / "e", limits=LIMITS, log=tmp_path / "log"
        )


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "build.log").mkdir()
    with pytest.raises(BuildError, match=r"build\.log: cannot be written: Is a directory"):
        build(tmp_path)


def test_a_full_disk_is_named(tmp_path: Path):
    """The program cannot write its engine; what it says is in the error."""

    class OnAFullDisk(LocalExecutor):
        def run(self, command: BuildCommand, *, log: Path, on_event: OnEvent) -> None:
            with file_size_limit(1500):
                super().run(command, log=log, on_event=on_event)

    with pytest.raises(CommandFailed, match="File too large"):
        build(tmp_path, executor=OnAFullDisk)
    assert left(tmp_path) == ["build.log", "checkpoint", "env"]


def test_the_spec_chooses_the_executor():
    assert isinstance(executor_for(tensorrt_llm_spec(executor="local")), LocalExecutor)
    assert isinstance(executor_for(tensorrt_llm_spec(executor="docker")), DockerExecutor)
