"""What lies below a folder, to compare before and after."""

from __future__ import annotations

from pathlib import Path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by its path below the folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in _files(folder)}


def texts(folder: Path) -> dict[str, str]:
    """Every text file by its path below the folder, without what Python compiled."""
    return {name: content.decode() for name, content in contents(folder).items() if "__pycache__" not in name}


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Size in bytes and time of change of every file: for files that are too large to read twice."""
    states = {path.relative_to(folder).as_posix(): path.stat() for path in _files(folder)}
    return {name: (state.st_size, state.st_mtime_ns) for name, state in states.items()}


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]
