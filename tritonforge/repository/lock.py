"""One writer at a time: an advisory lock that the kernel frees when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tritonforge.errors import RepositoryLocked
from tritonforge.repository.files import naming

POLL_INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds a lock, as they wrote it into the lock file.

    Args:
        pid: Their process.
        purpose: What they are doing.
    """

    pid: int
    purpose: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.purpose})"


class RepositoryLock:
    """The lock of a repository, as a context.

    Args:
        path: The lock file; made when it does not exist, and never removed.
        purpose: What it is held for, told to those who wait.
        wait_s: Seconds to wait for another holder; 0 does not wait.
        on_wait: Called once with the holder when there is something to wait for.

    Raises:
        RepositoryLocked: On entering, when another process holds it for longer than `wait_s`.
    """

    def __init__(
        self, path: Path, *, purpose: str, wait_s: float, on_wait: Callable[[LockHolder | None], None] | None = None
    ) -> None:
        self._path = path
        self._purpose = purpose
        self._wait_s = wait_s
        self._on_wait = on_wait
        self._descriptor: int | None = None

    def __enter__(self) -> RepositoryLock:
        with naming(self._path):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._acquire(descriptor)
            with naming(self._path):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "purpose": self._purpose}).encode(), 0)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)  # frees the lock
            self._descriptor = None

    def _acquire(self, descriptor: int) -> None:
        deadline_s = time.monotonic() + self._wait_s
        told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                return
            if time.monotonic() >= deadline_s:
                raise self._locked()
            if not told and self._on_wait is not None:
                self._on_wait(read_holder(self._path))
                told = True
            time.sleep(POLL_INTERVAL_S)

    def _locked(self) -> RepositoryLocked:
        holder = read_holder(self._path)
        return RepositoryLocked(
            f"{self._path}: held by {holder or 'another process'}; waited {self._wait_s:g} s",
            hint="wait until it has finished, or end that process; its lock ends with it",
        )


def read_holder(path: Path) -> LockHolder | None:
    """Who last took the lock, or None when nothing readable is written there."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        return LockHolder(int(value["pid"]), str(value["purpose"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
