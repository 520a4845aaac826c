import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import wait_until
from tests.support.standin_tool import install_standin
from tests.support.trtllm_builds import LIMITS, Adapted, empty_checkpoint, tensorrt_llm_spec
from tritonforge.engine.tensorrt_llm.build import build_engine, prepare_build
from tritonforge.engine.tensorrt_llm.local import LocalExecutor, find_program, installed_version, interpreter_of
from tritonforge.errors import BuildError, CommandFailed, ToolMissing
from tritonforge.events import OnEvent, ignore


def build(tmp_path: Path, executor: object, *, on_event: OnEvent = ignore, **fields: object) -> Path:
    spec = tensorrt_llm_spec(executor="local", **fields)
    checkpoint = empty_checkpoint(tmp_path / "checkpoint", tp=spec.tensor_parallel)
    log = tmp_path / "logs" / "build.log"
    made = build_engine(
        spec, checkpoint, tmp_path / "engine", limits=LIMITS, log=log, on_event=on_event, executor=executor
    )
    return made.path


def tool(tmp_path: Path, **env: str) -> Adapted:
    return Adapted(LocalExecutor("0.16.0", search_path=install_standin(tmp_path / "env"), grace_s=0.2), env=env)


def test_builds_with_the_program_on_path(tmp_path: Path):
    lines: list[str] = []
    folder = build(tmp_path, tool(tmp_path), on_event=lines.append, tensor_parallel=2, gpus=(1, 0))

    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "rank0.engine", "rank1.engine"]
    assert '"CUDA_VISIBLE_DEVICES": "1,0"' in (folder / "rank1.engine").read_text()
    assert lines[0] == f"running {tmp_path}/env/bin/trtllm-build of TensorRT-LLM 0.16.0"
    assert lines[1:] == (tmp_path / "logs" / "build.log").read_text().splitlines()


def test_the_timings_of_old_releases_do_not_go_into_the_engine(tmp_path: Path):
    folder = build(tmp_path, tool(tmp_path, STANDIN_TIMING_CACHE="1"))

    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "rank0.engine"]


def test_another_release_is_refused_before_it_runs(tmp_path: Path):
    executor = LocalExecutor("0.16.0", search_path=install_standin(tmp_path / "env", version="0.17.0"))

    with pytest.raises(BuildError, match=r"is of TensorRT-LLM 0\.17\.0; expected 0\.16\.0"):
        prepare_build(tensorrt_llm_spec(executor="local"), executor=executor)
    with pytest.raises(BuildError, match=r"is of TensorRT-LLM 0\.17\.0; expected 0\.16\.0") as caught:
        build(tmp_path, executor)
    assert "install tensorrt-llm==0.16.0" in (caught.value.hint or "")
    assert not (tmp_path / "logs").exists()


def test_a_failure_shows_the_last_lines_the_code_and_the_log(tmp_path: Path):
    executor = tool(tmp_path, STANDIN_LINES="3000", STANDIN_FAIL="no tactic for layer 7")

    with pytest.raises(CommandFailed) as caught:
        build(tmp_path, executor)
    log = tmp_path / "logs" / "build.log"
    assert str(caught.value).startswith(f"trtllm-build exited with 1; full log: {log}; last lines:\n")
    assert caught.value.tail[-1] == "RuntimeError: no tactic for layer 7"
    assert len(caught.value.tail) == 20
    assert len(log.read_text().splitlines()) > 3000
    assert not (tmp_path / "engine").exists()


def test_an_interrupted_build_leaves_no_process_and_no_folder(tmp_path: Path):
    def interrupt(line: str) -> None:
        if line == "hanging":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, tool(tmp_path, STANDIN_HANG="1"), on_event=interrupt)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "env", "logs"]
    assert not running(str(tmp_path / "env"))


def test_a_missing_program_says_where_it_was_looked_for(tmp_path: Path):
    with pytest.raises(ToolMissing, match=f"trtllm-build is not installed \\(looked in PATH: {tmp_path}\\)"):
        find_program(str(tmp_path))


def test_path_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = install_standin(tmp_path / "env")
    monkeypatch.setenv("PATH", folder, prepend=os.pathsep)

    assert find_program() == Path(folder, "trtllm-build")


@pytest.mark.parametrize(
    ("text", "interpreter"),
    [
        ("#!/opt/venv/bin/python3\nimport sys\n", ["/opt/venv/bin/python3"]),
        ("#!/usr/bin/env python3\nimport sys\n", ["/usr/bin/env", "python3"]),
        ("#!/bin/sh\n'''exec' \"/opt/with space/bin/python\" \"$0\" \"$@\"\n' '''\n", ["/opt/with space/bin/python"]),
    ],
)
def test_the_python_of_a_script_is_found(tmp_path: Path, text: str, interpreter: list[str]):
    (tmp_path / "script").write_text(text)

    assert interpreter_of(tmp_path / "script") == interpreter


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01", b"#!/bin/sh\nexec something\n", b"", b"#!/bin/sh 'open\n\n"])
def test_what_is_no_script_of_python_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "script").write_bytes(content)

    with pytest.raises(BuildError, match="cannot tell which TensorRT-LLM it belongs to"):
        interpreter_of(tmp_path / "script")


def test_a_python_without_tensorrt_llm_says_so(tmp_path: Path):
    (tmp_path / "script").write_text(f"#!{sys.executable}\n")

    with pytest.raises(BuildError, match="No package metadata was found for tensorrt_llm"):
        installed_version(tmp_path / "script")


def test_a_python_that_is_gone_says_so(tmp_path: Path):
    (tmp_path / "script").write_text("#!/nowhere/bin/python3\n")

    with pytest.raises(BuildError, match="/nowhere/bin/python3"):
        installed_version(tmp_path / "script")


def test_a_python_that_says_no_text_says_so(tmp_path: Path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nprintf '\\377'\n")
    python.chmod(0o755)
    (tmp_path / "script").write_text(f"#!{python}\n")

    with pytest.raises(BuildError, match="cannot tell which TensorRT-LLM it belongs to: .*can't decode"):
        installed_version(tmp_path / "script")


def test_sigterm_ends_the_program_too(tmp_path: Path):
    """A build that is asked to stop takes trtllm-build with it and cleans up."""
    script = f"""
from pathlib import Path
from tests.engine.tensorrt_llm.test_local import build, tool
from tritonforge.cli.signals import raise_when_stopped
folder = Path({str(tmp_path)!r})
with raise_when_stopped():
    build(folder, tool(folder, STANDIN_HANG="1"), on_event=lambda line: print(line, flush=True))
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        assert child.stdout is not None
        assert "hanging\n" in child.stdout
        child.send_signal(signal.SIGTERM)
        child.wait(30)
    wait_until(lambda: not running(str(tmp_path / "env")), "trtllm-build to end")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "env", "logs"]


def running(text: str) -> list[str]:
    """Command lines of processes that name `text`, but this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if text in command:
                    found.append(command)
    return found
