"""Entries of a build cache with two small files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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


def truncated(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])
