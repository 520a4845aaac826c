"""Why a server could not be started or stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritonforge.errors.base import TritonforgeError


class ServerError(TritonforgeError):
    """A Triton server could not be started or stopped."""

    exit_code = 6


class ServerExited(ServerError):
    """The server ended before it was ready, or while it was needed.

    Args:
        returncode: Its exit code; negative for a signal.
        tail: The last lines of its log.
        log: Its log file.
    """

    def __init__(self, returncode: int, *, tail: Sequence[str], log: Path | None, hint: str | None = None) -> None:
        where = f"; full log: {log}" if log is not None else ""
        last = "".join(f"\n  {line}" for line in tail)
        super().__init__(f"tritonserver exited with {returncode}{where}; last lines:{last}", hint=hint)
        self.returncode = returncode
        self.tail = tuple(tail)
        self.log = log


class NotReady(ServerError):
    """The server or a model was not ready in time.

    Args:
        waiting_for: What was waited for.
        after_s: Seconds waited.
        reason: The server's own reason, when it gave one.
    """

    def __init__(self, waiting_for: str, *, after_s: float, reason: str = "", hint: str | None = None) -> None:
        because = f": {reason}" if reason else ""
        super().__init__(f"{waiting_for} not ready after {after_s:.0f} s{because}", hint=hint)
        self.waiting_for = waiting_for
        self.after_s = after_s
        self.reason = reason


class PortTaken(ServerError):
    """A port that was asked for is in use."""

    def __init__(self, port: int, *, host: str, option: str) -> None:
        super().__init__(f"port {port} on {host} is in use", hint=f"stop what uses it, or pass another {option}")
        self.port = port
        self.host = host
