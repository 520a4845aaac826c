"""One entry of the build cache: a folder of files, and beside them what they are, with sizes and digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tritonforge.artifacts import digest_of
from tritonforge.pipeline.cache_key import CacheKey

ENTRY_NAME = "entry.json"
FILES = "files"
SCHEMA_VERSION = 1
# A published version may share the file with the cache (a hard link): nobody may change it in place.
READ_ONLY = 0o444


@dataclass(frozen=True, slots=True)
class CachedFile:
    """One file of an entry.

    Args:
        size_bytes: Its size.
        sha256: Digest of its content.
    """

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """An entry of the cache.

    Args:
        folder: Its folder.
        key: What decides its content.
        made_for: The version that it was made for, as messages name it.
        created: When, as ISO 8601 in UTC.
        took_s: Seconds that it took to make.
        about: What its maker wants to know again, as plain values.
        contents: Its files by their path below `files`.
    """

    folder: Path
    key: CacheKey
    made_for: str
    created: str
    took_s: float
    about: Mapping[str, object]
    contents: Mapping[str, CachedFile]

    @property
    def files(self) -> Path:
        """Folder of its files."""
        return self.folder / FILES

    @property
    def size_bytes(self) -> int:
        """Size of its files."""
        return sum(file.size_bytes for file in self.contents.values())


def seal(folder: Path, key: CacheKey, *, made_for: str, took_s: float, about: Mapping[str, object]) -> None:
    """Write down what is in a finished entry, and make its files read-only.

    Raises:
        OSError: A file cannot be read or written.
    """
    paths = _files(folder / FILES)
    for path in paths:
        path.chmod(READ_ONLY)
    with ThreadPoolExecutor() as threads:  # hashing lets go of the interpreter lock
        digests = list(threads.map(_sha256, paths))
    contents: dict[str, object] = {
        path.relative_to(folder / FILES).as_posix(): {"size_bytes": path.stat().st_size, "sha256": digest}
        for path, digest in zip(paths, digests, strict=True)
    }
    content: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "kind": key.kind,
        "key": key.parts,
        "made_for": made_for,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "took_s": round(took_s, 2),
        "about": about,
        "files": contents,
    }
    content["digest"] = digest_of(content)
    (folder / ENTRY_NAME).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_entry(folder: Path) -> CacheEntry | str:
    """An entry, or what is wrong with it. Its files are not looked at."""
    path = folder / ENTRY_NAME
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value.pop("digest") != digest_of(value) or value["schema_version"] != SCHEMA_VERSION:
            return f"{path.name} was changed, or written by another release"
        return CacheEntry(
            folder=folder,
            key=CacheKey(value["kind"], dict(value["key"])),
            made_for=str(value["made_for"]),
            created=str(value["created"]),
            took_s=float(value["took_s"]),
            about=dict(value["about"]),
            contents={str(name): CachedFile(**file) for name, file in value["files"].items()},
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        return f"{path.name} cannot be read ({error})"


def fault_of(entry: CacheEntry, *, deep: bool) -> str | None:
    """What is wrong with the files of an entry, or None.

    Args:
        entry: The entry.
        deep: Whether their content is read too. Without it an edit that keeps the size is not seen.
    """
    try:
        found = {path.relative_to(entry.files).as_posix(): path for path in _files(entry.files)}
        if found.keys() != entry.contents.keys():
            odd = sorted(found.keys() ^ entry.contents.keys())[0]
            return f"{odd} is {'not there' if odd in entry.contents else 'not one of its files'}"
        for name, path in found.items():
            size, expected = path.stat().st_size, entry.contents[name].size_bytes
            if size != expected:
                return f"{name} has {size} bytes instead of {expected}"
        return _changed_content(entry, found) if deep else None
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"


def _changed_content(entry: CacheEntry, found: Mapping[str, Path]) -> str | None:
    with ThreadPoolExecutor() as threads:
        for name, digest in zip(found, threads.map(_sha256, found.values()), strict=True):
            if digest != entry.contents[name].sha256:
                return f"{name} was changed"
    return None


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
