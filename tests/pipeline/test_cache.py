"""The build cache by itself: hit, miss and why, damage, kills at any point, several processes at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.processes import wait_until
from tritonforge.artifacts import digest_of
from tritonforge.errors import BuildError
from tritonforge.pipeline.cache import BuildCache
from tritonforge.pipeline.cache_key import CacheKey

CONTENT = {"graph.bin": b"weights" * 100, "deep/settings.json": b"{}"}


def key(release: str = "0.16.0", **more: object) -> CacheKey:
    return CacheKey.of("engines", {"checkpoint": "c" * 64, "release": release, **more})


def make(folder: Path) -> Mapping[str, object]:
    for name, content in CONTENT.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return {"vocab_size": 32}


def refuse(folder: Path) -> Mapping[str, object]:
    raise AssertionError("made although it is cached")


def fetch(cache: BuildCache, wanted: CacheKey, maker=make) -> list[str]:
    """Take an entry, check its content, and return what was said."""
    said: list[str] = []
    with cache.entry(wanted, maker, made_for="tiny version 1", on_event=said.append) as entry:
        assert {name: (entry.files / name).read_bytes() for name in entry.contents} == CONTENT
        assert entry.about == {"vocab_size": 32}
    return said


def test_what_was_made_once_is_taken_the_second_time_with_a_reason(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")

    assert fetch(cache, key()) == ["tiny version 1: engine: not from the build cache: nothing of its kind is there yet"]
    (hit,) = fetch(cache, key(), refuse)

    assert hit.startswith("tiny version 1: engine: from the build cache: made for tiny version 1 at 20")
    assert hit.endswith("; the same are: checkpoint, release")


def test_a_miss_names_what_differs_from_the_nearest(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    fetch(cache, key("0.12.0", gpu_architecture=None, plugins={"gemm": "auto", "paged_kv_cache": True}))
    fetch(cache, key("0.16.0", gpu_architecture="sm_90", plugins={"gemm": "auto", "paged_kv_cache": True}))

    wanted = key("0.17.0", gpu_architecture="sm_90", plugins={"gemm": "auto", "paged_kv_cache": False})
    (miss,) = fetch(cache, wanted)

    assert miss == (
        "tiny version 1: engine: not from the build cache: against that of tiny version 1, changed: "
        "plugins.paged_kv_cache true → false; release 0.16.0 → 0.17.0"
    )


def test_a_forecast_writes_nothing(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")

    assert cache.forecast(key()).entry is None
    assert list(tmp_path.iterdir()) == []
    fetch(cache, key())
    assert cache.forecast(key()).entry is not None
    assert cache.forecast(key("0.17.0")).changes == ("release 0.16.0 → 0.17.0",)


def test_its_size_is_that_of_its_files(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    fetch(cache, key())
    fetch(cache, key("0.17.0"))

    size = cache.size()

    assert (size.entries, size.size_bytes) == (2, 2 * sum(map(len, CONTENT.values())))


def test_the_reading_of_a_large_entry_is_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonforge.pipeline.cache._LARGE_BYTES", 100)
    cache = BuildCache(tmp_path / "cache")
    fetch(cache, key())

    reading, hit = fetch(cache, key(), refuse)

    assert reading.endswith("engine: reading 0.0 GB of the build cache, to see that they are whole")
    assert "from the build cache: made for" in hit


def test_its_files_are_read_only(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")

    with cache.entry(key(), make, made_for="tiny version 1", on_event=str) as entry:
        assert {path.stat().st_mode & 0o777 for path in entry.files.rglob("*.*")} == {0o444}


def truncated(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])


def edited(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"W" + path.read_bytes()[1:])


def added(path: Path) -> None:
    path.with_name("other.bin").write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (truncated, "graph.bin has 699 bytes instead of 700"),
        (edited, "graph.bin was changed"),
        (Path.unlink, "graph.bin is not there"),
        (added, "other.bin is not one of its files"),
    ],
)
def test_a_damaged_entry_is_made_again(tmp_path: Path, damage, fault: str) -> None:
    cache = BuildCache(tmp_path / "cache")
    fetch(cache, key())
    (path,) = cache.folder.rglob("graph.bin")
    damage(path)

    assert fetch(cache, key()) == [f"tiny version 1: engine: not from the build cache: damaged there: {fault}"]
    assert len(fetch(cache, key(), refuse)) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "engines"}', None])
def test_an_entry_without_a_readable_record_is_made_again(tmp_path: Path, text: str | None) -> None:
    cache = BuildCache(tmp_path / "cache")
    fetch(cache, key())
    (path,) = cache.folder.rglob("entry.json")
    path.unlink() if text is None else path.write_text(text)

    (said,) = fetch(cache, key())

    assert "damaged there: entry.json cannot be read" in said
    assert len(fetch(cache, key(), refuse)) == 1


def other_about(value: dict) -> None:
    value["about"] = {"vocab_size": 33}


def other_schema(value: dict) -> None:
    value["schema_version"] = 2
    value["digest"] = digest_of({name: part for name, part in value.items() if name != "digest"})


@pytest.mark.parametrize("change", [other_about, other_schema])
def test_a_record_that_is_not_as_it_was_written_is_not_believed(tmp_path: Path, change) -> None:
    cache = BuildCache(tmp_path / "cache")
    fetch(cache, key())
    (path,) = cache.folder.rglob("entry.json")
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))

    assert cache.forecast(key()).entry is None
    (said,) = fetch(cache, key())

    assert said.endswith("damaged there: entry.json was changed, or written by another release")


def test_an_entry_under_another_name_is_not_taken(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")
    fetch(cache, key())
    (folder,) = cache.folder.glob("engines/[!.]*/")
    folder.rename(folder.with_name(key("0.17.0").digest))

    assert cache.forecast(key("0.17.0")).entry is None
    (said,) = fetch(cache, key("0.17.0"))

    assert said.endswith("damaged there: entry.json is of another key")


def test_what_fails_leaves_no_entry(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "cache")

    def fail(folder: Path) -> Mapping[str, object]:
        make(folder)
        raise BuildError("out of memory")

    with pytest.raises(BuildError, match="out of memory"):
        fetch(cache, key(), fail)

    assert cache.size().entries == 0
    assert not list(cache.folder.rglob("graph.bin"))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")

    with pytest.raises(BuildError, match="cache/engines: cannot be written"):
        fetch(BuildCache(tmp_path / "cache"), key())


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
from tests.pipeline.test_cache import key, make
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
