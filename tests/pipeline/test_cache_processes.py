"""The build cache and several processes: kills at any point, and two that want the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.pipeline.cache_entries import fetch, key, make, refuse, truncated
from tests.support.processes import wait_until
from tritonforge.errors import BuildError
from tritonforge.pipeline.cache import BuildCache


def fetch_and_die(cache: BuildCache, *, at_event: int) -> bool:
    """Make an entry in a child that kills itself at its n-th file operation; False when it got to the end."""
    events = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree", "fcntl.flock")
    pid = os.fork()
    if pid == 0:
        seen = 0

        def watch(event: str, arguments: object) -> None:
            nonlocal seen
            if event in events:
                seen += 1
                if seen == at_event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            fetch(cache, key())
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_killed_at_any_point_there_is_a_whole_entry_or_none(tmp_path: Path, is_damaged: bool) -> None:
    outcomes, point, died = [], 0, True
    while died:
        point += 1
        cache = BuildCache(tmp_path / str(point), wait_s=0)
        if is_damaged:
            fetch(cache, key())
            truncated(next(cache.folder.rglob("graph.bin")))
        died = fetch_and_die(cache, at_event=point)

        (said,) = fetch(cache, key())  # the content is checked, and the lock of the dead one is free

        outcomes.append("from the build cache: made for" in said)
        assert not list(cache.folder.rglob("*.partial")), f"killed at file operation {point}"

    assert outcomes.count(False) > 8  # it was killed before the end, many times
    assert outcomes[-1]
    assert sorted(outcomes) == outcomes  # once it is there, it stays there


SLOW = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.pipeline.cache_entries import key, make
from tritonforge.pipeline.cache import BuildCache

def slowly(folder):
    print("making", flush=True)
    sys.stdin.readline()
    return make(folder)

with BuildCache(Path(sys.argv[1])).entry(key(), slowly, made_for=sys.argv[2], on_event=print):
    pass
"""


@pytest.fixture
def maker(tmp_path: Path):
    """Another process that is about to make the entry, and does when it reads a line."""
    argv = [sys.executable, "-c", SLOW, str(tmp_path / "cache"), "tiny version 7", str(Path(__file__).parents[2])]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert "not from the build cache" in child.stdout.readline()
    assert child.stdout.readline() == "making\n"
    yield child
    child.kill()
    child.communicate(timeout=30)


def test_the_second_of_two_waits_and_then_takes_what_the_first_has_made(tmp_path: Path, maker) -> None:
    said: list[str] = []

    def second() -> None:
        with BuildCache(tmp_path / "cache").entry(key(), refuse, made_for="tiny version 1", on_event=said.append):
            said.append("got it")

    thread = threading.Thread(target=second)
    thread.start()
    wait_until(lambda: bool(said), "the message that it waits")
    maker.stdin.write("go on\n")
    maker.stdin.flush()
    thread.join(timeout=30)

    assert said[0] == f"tiny version 1: engine: waiting for process {maker.pid} (engine of tiny version 7)"
    assert said[1].startswith("tiny version 1: engine: from the build cache: made for tiny version 7")
    assert said[2:] == ["got it"]


def test_the_second_of_two_makes_it_when_the_first_is_killed(tmp_path: Path, maker) -> None:
    said: list[str] = []

    def tell(line: str) -> None:
        said.append(line)
        if "waiting" in line:
            maker.kill()
            maker.wait(timeout=30)

    with BuildCache(tmp_path / "cache").entry(key(), make, made_for="tiny version 1", on_event=tell) as entry:
        assert entry.made_for == "tiny version 1"

    assert "nothing of its kind is there yet" in said[-1]
    assert not list((tmp_path / "cache").rglob("*.partial"))


def test_waiting_has_an_end_that_names_the_other(tmp_path: Path, maker) -> None:
    cache = BuildCache(tmp_path / "cache", wait_s=0.1)

    with pytest.raises(BuildError, match=rf"held by process {maker.pid} \(engine of tiny version 7\); waited 0.1 s"):
        fetch(cache, key())


def test_an_entry_in_use_is_not_replaced(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache", wait_s=0.1)

    with cache.entry(key(), make, made_for="tiny version 1", on_event=str) as entry:
        assert len(fetch(cache, key(), refuse)) == 1  # others may use it too
        truncated(entry.files / "graph.bin")
        with pytest.raises(BuildError, match="waited 0.1 s"):
            fetch(cache, key())
