"""Builds that are killed, and builds of the same at the same time: the cache holds whole entries, each made once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.builds import build, states, write_spec
from tests.support.processes import children
from tests.support.standin_tool import install_standin
from tritonforge.launch.owner import end_orphans
from tritonforge.launch.process import process_start
from tritonforge.pipeline.cache_entry import CacheEntry, fault_of, read_entry

ROOT = Path(__file__).parents[2]
ENGINE = '{engine: {kind: tensorrt_llm, release: "0.16.0", executor: local}}'
LIMITS = "    limits: {max_batch_size: 4, max_seq_len: 128}\n"
# Builds, prints each line, and waits for an answer before it goes on.
STEPPED = """
import sys
from pathlib import Path
from tests.pipeline.builds import build

def on_event(line):
    print(line, flush=True)
    sys.stdin.readline()

build(Path(sys.argv[1]), on_event=on_event)
"""


@pytest.fixture
def spec(tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{install_standin(tmp_path / 'environment')}:{os.environ['PATH']}")
    return write_spec(tmp_path, tiny_llama, versions=f"1: {ENGINE}", more=LIMITS)


class SteppedBuild:
    """A build in a process of its own, one event at a time."""

    def __init__(self, spec: Path) -> None:
        argv = [sys.executable, "-c", STEPPED, str(spec)]
        self.process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said: list[str] = []

    def read(self) -> str:
        """The next event, or an empty string at its end. It stands still until it is told to go on."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().rstrip("\n")
        if line:
            self.said.append(line)
        return line

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def run_to(self, text: str) -> None:
        """Go on until an event has this text, and stand still there."""
        while text not in (line := self.read()):
            assert line, f"{text!r} is not in {self.said}"
            self.go_on()

    def run_to_end(self) -> None:
        self.go_on()
        while self.read():
            self.go_on()
        assert self.process.wait(timeout=60) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)


@pytest.fixture
def stepped(spec: Path) -> Iterator[SteppedBuild]:
    build = SteppedBuild(spec)
    yield build
    build.kill()


def sound_entries(cache: Path) -> list[str]:
    """Kinds of the entries, each of which is whole."""
    entries = [read_entry(path.parent) for path in sorted(cache.glob("*/[!.]*/entry.json"))]
    assert all(isinstance(entry, CacheEntry) and fault_of(entry, deep=True) is None for entry in entries)
    return [entry.key.kind for entry in entries if isinstance(entry, CacheEntry)]


@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("engine: not from the build cache", []),
        ("checkpoint: not from the build cache", []),
        ("converting", []),
        ("wrote the TensorRT-LLM checkpoint", []),
        ("running", ["checkpoints"]),
        ("stand-in", ["checkpoints"]),
        ("publishing", ["checkpoints", "engines"]),
    ],
)
def test_a_killed_build_leaves_what_is_whole_and_the_next_one_goes_on(
    spec: Path, stepped: SteppedBuild, point: str, left: list[str]
) -> None:
    stepped.run_to(point)
    stepped.kill()

    assert sound_entries(spec.parent / "models.forge" / "cache") == left
    said: list[str] = []
    assert states(build(spec, on_event=said.append)) == {1: "new"}

    assert any(line.startswith("converting") for line in said) == ("checkpoints" not in left)
    assert any(line.startswith("running") for line in said) == ("engines" not in left)
    assert sound_entries(spec.parent / "models.forge" / "cache") == ["checkpoints", "engines"]
    assert not list(spec.parent.rglob("*.partial"))


def test_a_program_that_a_killed_build_has_left_is_ended_by_the_next(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_HANG", "1")
    hanging = SteppedBuild(spec)
    try:
        hanging.run_to("hanging")
        (compiling,) = children(hanging.process.pid)
    finally:
        hanging.kill()
    assert process_start(compiling) is not None, "nobody has told it"
    monkeypatch.delenv("STANDIN_HANG")
    said: list[str] = []

    assert states(build(spec, on_event=said.append)) == {1: "new"}

    assert process_start(compiling) is None
    assert f"ended what a killed build has left running (process ids: {compiling})" in said


def test_what_a_living_build_has_started_is_left_alone(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_HANG", "1")
    hanging = SteppedBuild(spec)
    try:
        hanging.run_to("hanging")
        (compiling,) = children(hanging.process.pid)

        assert compiling not in end_orphans()
        assert process_start(compiling) is not None
    finally:
        hanging.kill()
        assert compiling in end_orphans()


def test_two_builds_of_the_same_convert_and_compile_once(spec: Path, stepped: SteppedBuild) -> None:
    stepped.run_to("converting")
    second = SteppedBuild(spec)
    try:
        second.run_to("waiting for process")
        assert f"process {stepped.process.pid} (engine of tiny version 1)" in second.said[-1]
        stepped.run_to_end()
        second.run_to_end()
    finally:
        second.kill()

    assert any("engine: from the build cache: made for tiny version 1" in line for line in second.said)
    assert not any(line.startswith(("converting", "running")) for line in second.said)
    assert "tiny version 1: another build has published it meanwhile" in second.said


def test_a_build_that_is_asked_to_stop_ends_what_it_has_started(spec: Path) -> None:
    environment = os.environ | {"STANDIN_HANG": "1"}
    argv = [sys.executable, "-m", "tritonforge", "build", "-f", str(spec)]
    with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True) as build:
        assert build.stderr is not None
        while "hanging" not in (line := build.stderr.readline()):
            assert line, "it ended before the stand-in was started"
        compiling = children(build.pid)
        build.send_signal(signal.SIGTERM)

        assert build.wait(timeout=60) == 128 + signal.SIGTERM

    assert len(compiling) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in compiling)
    assert not list(spec.parent.rglob("*.partial"))
    assert sound_entries(spec.parent / "models.forge" / "cache") == ["checkpoints"]
