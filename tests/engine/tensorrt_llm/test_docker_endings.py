"""However a build in a container ends, nothing is left of it but its log."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docker_builds import Builds, at_line
from tests.support.docker_engine import can_start, own_engine
from tests.support.processes import wait_until
from tritonforge.errors import BuildError, CommandFailed, ContainerError


def interrupt() -> None:
    raise KeyboardInterrupt


def test_an_interruption_ends_the_container(builds: Builds):
    with pytest.raises(KeyboardInterrupt):
        builds.run(env={"STANDIN_HANG": "1"}, on_event=at_line("hanging", interrupt))
    assert builds.left() == ["build.log", "checkpoint"]
    assert builds.engine.containers() == []


def test_an_interruption_between_creation_and_start_leaves_nothing(builds: Builds):
    def on_event(line: str) -> None:
        if line.startswith("running "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builds.run(on_event=on_event)
    assert builds.engine.containers() == []


def test_a_container_that_is_killed_is_no_success(builds: Builds):
    def kill() -> None:
        (name,) = builds.engine.containers()
        with contextlib.closing(builds.engine.client()) as client:
            client.containers.get(name).kill()

    with pytest.raises(CommandFailed, match=r"exited with 137 \(killed with SIGKILL\)") as caught:
        builds.run(env={"STANDIN_HANG": "1"}, on_event=at_line("hanging", kill))
    assert "dmesg" in (caught.value.hint or "")


def test_a_container_that_somebody_removes_is_no_success(builds: Builds):
    def remove() -> None:
        (name,) = builds.engine.containers()
        with contextlib.closing(builds.engine.client()) as client:
            client.containers.get(name).remove(force=True)

    with pytest.raises(BuildError):
        builds.run(env={"STANDIN_HANG": "1"}, on_event=at_line("hanging", remove))
    assert builds.left() == ["build.log", "checkpoint"]


def test_a_container_without_memory_says_so(builds: Builds):
    def let_it_allocate() -> None:
        (name,) = builds.engine.containers()
        with contextlib.closing(builds.engine.client()) as client:
            client.containers.get(name).update(mem_limit="64m", memswap_limit="64m")
        (folder,) = builds.folder.glob(".engine*")
        (folder / "go").touch()

    with pytest.raises(CommandFailed, match=r"exited with 137 \(the container was killed: out of memory\)"):
        builds.run(env={"STANDIN_ALLOCATE_MIB": "256"}, on_event=at_line("waiting to allocate", let_it_allocate))


def child_that_hangs(builds: Builds) -> subprocess.Popen[str]:
    """A process of its own whose build hangs in its container."""
    builds.engine.standin("0.16.0")
    program = f"""
from pathlib import Path
from tests.support.docker_builds import Builds, DockerEngine
from tritonforge.cli.signals import raise_when_stopped
engine = DockerEngine({builds.engine.address!r}, {builds.engine.gives_gpus!r}, {builds.engine.images!r})
with raise_when_stopped():
    Builds(engine, Path({str(builds.folder)!r})).run(
        env={{"STANDIN_HANG": "1"}}, on_event=lambda line: print(line, flush=True)
    )
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert child.stdout is not None
    assert "hanging\n" in child.stdout
    assert len(builds.engine.containers()) == 1
    return child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_container(builds: Builds, number: signal.Signals):
    with child_that_hangs(builds) as child:
        child.send_signal(number)
        child.wait(60)
    assert builds.engine.containers() == []
    assert builds.left() == ["build.log", "checkpoint"]


def test_what_a_killed_process_left_is_removed_by_the_next_build(builds: Builds, tmp_path: Path):
    with child_that_hangs(builds) as child:
        child.kill()
        child.wait(60)
    (orphan,) = builds.engine.containers()
    lines: list[str] = []
    after = Builds(builds.engine, tmp_path / "after")
    after.folder.mkdir()
    after.run(on_event=lines.append)

    assert lines[0] == f"removed the container {orphan} of a build whose tritonforge has died"
    assert builds.engine.containers() == []


def test_the_container_of_a_build_under_way_is_not_taken_for_an_orphan(builds: Builds, tmp_path: Path):
    with child_that_hangs(builds) as child:
        other = Builds(builds.engine, tmp_path / "other")
        other.folder.mkdir()
        other.run()
        assert len(builds.engine.containers()) == 1
        child.terminate()
        child.wait(60)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # the SDK's, of connections that fail
def test_an_engine_that_dies_during_a_build_is_named(tmp_path: Path):
    if not can_start():
        pytest.skip("no engine of our own can be started")
    with own_engine() as engine:
        builds = Builds(engine, tmp_path)
        socket = Path(engine.address.removeprefix("unix://"))
        with pytest.raises(ContainerError, match=f"the Docker Engine at {engine.address} went away"):
            builds.run(env={"STANDIN_HANG": "1"}, on_event=at_line("hanging", lambda: kill_owner(socket)))
        assert builds.left() == ["build.log", "checkpoint"]
    gc.collect()


def kill_owner(socket: Path) -> None:
    """Kill the engine that was started for this test."""
    pid = next(
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and is_engine(entry, str(socket))
    )
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not Path("/proc", str(pid), "exe").exists(), "dockerd to end")


def is_engine(process: Path, socket: str) -> bool:
    with contextlib.suppress(OSError):
        words = (process / "cmdline").read_bytes().split(b"\0")
        return words[0].endswith(b"dockerd") and f"unix://{socket}".encode() in words
    return False
