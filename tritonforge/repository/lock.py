"""One writer at a time: the lock of a repository."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from tritonforge.errors import RepositoryLocked
from tritonforge.locks import FileLock, OnWait, read_holder
from tritonforge.repository.files import naming


class RepositoryLock:
    """The lock of a repository, as a context.

    Args:
        path: The lock file; made when it does not exist, and never removed.
        purpose: What it is held for, told to those who wait.
        wait_s: Seconds to wait for another holder; 0 does not wait.
        on_wait: Called once with the holder when there is something to wait for.

    Raises:
        RepositoryLocked: On entering, when another process holds it for longer than `wait_s`.
        PublishFailed: On entering, when the file cannot be written.
    """

    def __init__(self, path: Path, *, purpose: str, wait_s: float, on_wait: OnWait | None = None) -> None:
        self._path = path
        self._wait_s = wait_s
        self._lock = FileLock(path, purpose=purpose, on_wait=on_wait)

    def __enter__(self) -> RepositoryLock:
        with naming(self._path):
            self._lock.__enter__()
            try:
                taken = self._lock.acquire(wait_s=self._wait_s)
            except BaseException:
                self._lock.__exit__(None, None, None)
                raise
        if not taken:
            self._lock.__exit__(None, None, None)
            holder = read_holder(self._path)
            raise RepositoryLocked(
                f"{self._path}: held by {holder or 'another process'}; waited {self._wait_s:g} s",
                hint="wait until it has finished, or end that process; its lock ends with it",
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.__exit__(kind, error, trace)
