"""The record of what was published when: one JSON file per generation, never changed afterwards."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from tritonforge.repository.files import naming, replace_text

SCHEMA_VERSION = 1
# Larger files are engines and weights: their manifest names them, so their size is enough here.
HASHED_UP_TO_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Change:
    """One file or folder that a generation put in place.

    Args:
        path: Path relative to the repository.
        digest: sha256 over its files' names and content (over name and size for files above 1 MiB).
        replaced: Something stood there before; it is in the archive folder of this generation.
    """

    path: str
    digest: str
    replaced: bool


@dataclass(frozen=True, slots=True)
class Generation:
    """One finished change of the repository.

    Args:
        number: Counts up from 1.
        purpose: What was done, for people.
        created: When, as ISO 8601 in UTC.
        changes: What was put in place, in order.
        schema_version: Counts up when the meaning of a key changes.
    """

    number: int
    purpose: str
    created: str
    changes: tuple[Change, ...]
    schema_version: int = SCHEMA_VERSION


def history_folder(forge: Path) -> Path:
    """Folder of the records, in the folder beside a repository."""
    return forge / "history"


def next_number(forge: Path) -> int:
    """Number of the next generation: above all that are recorded and all that have an archive."""
    names = [path.stem for folder in (history_folder(forge), forge / "archive") for path in folder.glob("*")]
    return 1 + max((int(name) for name in names if name.isdecimal()), default=0)


def record_path(history: Path, number: int) -> Path:
    """File that records a generation."""
    return history / f"{number:06d}.json"


def write_generation(history: Path, generation: Generation, *, via: Path) -> None:
    """Record a generation.

    Raises:
        PublishFailed: The record cannot be written.
    """
    text = json.dumps(dataclasses.asdict(generation), indent=2, ensure_ascii=False) + "\n"
    replace_text(record_path(history, generation.number), text, via=via)


def digest_of_tree(path: Path) -> str:
    """sha256 over a file, or over a folder's files with their names.

    Raises:
        PublishFailed: A file cannot be read.
    """
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(item for item in path.rglob("*") if item.is_file())
    for file in files:
        with naming(file, "read"):
            size = file.stat().st_size
            content = file.read_bytes() if size <= HASHED_UP_TO_BYTES else b""
        name = "" if file == path else file.relative_to(path).as_posix()
        digest.update(json.dumps([name, size, hashlib.sha256(content).hexdigest()]).encode())
    return digest.hexdigest()
