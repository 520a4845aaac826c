"""Waiting for what other processes do, and what those of a running server tell about reloads."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def model_processes(server_pid: int, model: str) -> set[int]:
    """Process ids of a model's stubs: a reload would give it new ones.

    Args:
        server_pid: Process id of tritonserver.
        model: Name of the model.
    """
    return {pid for pid, command in _children(server_pid) if "stub" in command and f"/{model}/" in command}


def children(parent: int) -> set[int]:
    """Process ids of a process's children."""
    return {pid for pid, _ in _children(parent)}


def wait_until(condition: Callable[[], bool], what: str = "the condition", *, timeout_s: float = 30.0) -> None:
    """Wait for a condition; fails when it does not come true in time, naming `what` was waited for."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"waited {timeout_s:g} s for {what}"
        time.sleep(0.02)


def _children(parent: int) -> list[tuple[int, str]]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        if int(fields[1]) == parent:
            found.append((int(entry.name), command))
    return found
