"""One server a repository: a lock that the server itself holds for as long as it lives.

The lock is taken before the server is started and is inherited by it, so it outlives a launcher that is killed, and the
kernel frees it when the last process of the server has ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from tritonforge.errors import ServerError
from tritonforge.places import forge_folder
from tritonforge.server.state import running_state

POLL_INTERVAL_S = 0.05
# A server that is being killed holds the lock until its last process is gone; another start may just become ready.
WAIT_S = 5.0


@contextlib.contextmanager
def claimed(repository: Path, *, wait_s: float = WAIT_S) -> Iterator[int]:
    """Holds the right to serve a repository for the block, and beyond it in a child that gets the descriptor.

    Args:
        repository: The model repository.
        wait_s: Seconds to wait for a server that is about to end, or a start that is about to be ready.

    Yields:
        The descriptor to pass to the server.

    Raises:
        ServerError: The repository is served already, or the lock file cannot be written.
    """
    path = forge_folder(repository) / "server.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ServerError(f"{path}: {error.strerror}", hint="the repository's folder must be writable") from error
    try:
        _acquire(descriptor, repository, path, wait_s)
        write_holder(descriptor, os.getpid())
        yield descriptor
    finally:
        os.close(descriptor)


def write_holder(descriptor: int, pid: int) -> None:
    """Note whom others are to look for: the starting process, then the server, which may outlive it."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(pid).encode(), 0)


def _acquire(descriptor: int, repository: Path, path: Path, wait_s: float) -> None:
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            _refuse_second_server(repository)
        except OSError as error:
            raise ServerError(
                f"{path}: {error.strerror}", hint="keep the repository on a file system with locks"
            ) from error
        if time.monotonic() >= deadline_s:
            holder = path.read_text(encoding="utf-8", errors="replace") or "another one"
            raise ServerError(
                f"{repository} is being started or stopped by process {holder}",
                hint="wait until it is ready and use that server, or end that process",
            )
        time.sleep(POLL_INTERVAL_S)


def _refuse_second_server(repository: Path) -> None:
    running = running_state(repository)
    if running is not None:
        raise ServerError(
            f"{repository} is already served by process {running.pid} at {running.address.grpc_url}",
            hint=f"use that server, or stop it with: kill {running.pid}",
        )
