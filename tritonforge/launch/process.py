"""A running child process that writes to a log file and always has an end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tritonforge.launch.command import Command


class Process:
    """A child in a process group of its own, with its output in a log file.

    Leaving the context stops it: SIGTERM first, SIGKILL to the whole group when `grace_s` has passed.

    Args:
        command: What to run.
        log: File that takes standard output and standard error; overwritten.
        grace_s: Seconds between SIGTERM and SIGKILL.
        pass_fds: Descriptors that the child inherits.
    """

    def __init__(self, command: Command, *, log: Path, grace_s: float = 30.0, pass_fds: Sequence[int] = ()) -> None:
        self.command = command
        self.log = log
        self.grace_s = grace_s
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._child = subprocess.Popen(
                command.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **command.env},
                cwd=command.cwd,
                start_new_session=True,
                pass_fds=pass_fds,
            )

    @property
    def pid(self) -> int:
        """Process id of the child, which is also its process group."""
        return self._child.pid

    def returncode(self) -> int | None:
        """Exit code, or None while it runs."""
        return self._child.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the end. Raises `subprocess.TimeoutExpired` when `timeout_s` passes."""
        return self._child.wait(timeout_s)

    def tail(self, lines: int = 20) -> list[str]:
        """The last lines of the log."""
        return tail_of(self.log, lines)

    def stop(self) -> int:
        """End the child and what is left of its group; returns its exit code."""
        try:
            if self._child.poll() is None:
                self._child.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(self.grace_s)
        finally:
            self._kill_group()  # also when Ctrl-C comes a second time
        return self._child.wait()

    def _kill_group(self) -> None:
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return  # the group has ended with its leader

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def tail_of(path: Path, lines: int) -> list[str]:
    """The last `lines` lines of a text file, read from its end; empty when there is no such file."""
    wanted_bytes = lines * 400
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - wanted_bytes))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return text.splitlines()[-lines:]


def process_start(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is no such process or it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name in brackets, which may itself hold blanks and brackets.
    fields = text.rpartition(")")[2].split()
    if fields[0] in ("Z", "X"):
        return None  # ended, and not yet collected by its parent
    return int(fields[19])
