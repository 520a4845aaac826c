"""The build cache by itself: hit, miss and why, and damage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.pipeline.cache_entries import CONTENT, fetch, key, make, refuse, truncated
from tritonforge.artifacts import digest_of
from tritonforge.errors import BuildError
from tritonforge.pipeline.cache import BuildCache


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


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "engines"}', "[" * 100_000, None])
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


def test_a_folder_that_cannot_be_looked_into_is_named(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / ("x" * 300))

    for look in (cache.sweep, cache.size, lambda: cache.forecast(key())):
        with pytest.raises(BuildError, match=r"/x+/(checkpoints|engines): cannot be written: File name too long"):
            look()
