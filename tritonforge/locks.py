"""Advisory locks on files, which the kernel frees when their holder dies: a dead process never blocks a living one."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

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


OnWait = Callable[[LockHolder | None], None]


class FileLock:
    """A lock file that is open for a block. Nothing is locked until `acquire` says so; leaving the block frees it.

    Args:
        path: The lock file; made when it does not exist, and never removed.
        purpose: What it is held for, told to those who wait.
        on_wait: Called once per `acquire` with the holder when there is something to wait for.

    Raises:
        OSError: On entering, when the file cannot be made.
    """

    def __init__(self, path: Path, *, purpose: str, on_wait: OnWait | None = None) -> None:
        self._path = path
        self._purpose = purpose
        self._on_wait = on_wait
        self._descriptor: int | None = None

    def __enter__(self) -> FileLock:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def acquire(self, *, wait_s: float, shared: bool = False) -> bool:
        """Take the lock, in place of the one that this block may hold.

        Args:
            wait_s: Seconds to wait for another holder; 0 does not wait.
            shared: Together with others who share it, as readers do; else alone, and the holder is written down.

        Returns:
            Whether it was taken in time.

        Raises:
            OSError: The file system has no locks.
        """
        assert self._descriptor is not None, "acquire() outside the block"
        if not shared:  # two who share it and both want it alone would wait for each other
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        deadline_s = time.monotonic() + wait_s
        told = False
        while not self._try(shared=shared):
            if time.monotonic() >= deadline_s:
                return False
            if not told and self._on_wait is not None:
                self._on_wait(read_holder(self._path))
                told = True
            time.sleep(POLL_INTERVAL_S)
        if not shared:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps({"pid": os.getpid(), "purpose": self._purpose}).encode(), 0)
        return True

    def _try(self, *, shared: bool) -> bool:
        assert self._descriptor is not None
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def read_holder(path: Path) -> LockHolder | None:
    """Who last took the lock alone, or None when nothing readable is written there."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        return LockHolder(int(value["pid"]), str(value["purpose"]))
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
