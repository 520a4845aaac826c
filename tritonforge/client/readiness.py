"""Waiting for a model: how long still, how often to ask, when to give up. The clock is handed in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tritonforge.client.types import ModelInfo
from tritonforge.errors import ModelNotReady, NotReady

FIRST_DELAY_S = 0.02
LONGEST_DELAY_S = 0.5


class ReadyWait:
    """One wait.

    Args:
        model: The model's name.
        version: Numeric version, or empty for any.
        server: The server's address, for error messages.
        timeout_s: When to give up.
        clock: Gives seconds, never backwards.
    """

    def __init__(
        self, model: str, version: str, *, server: str, timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._model = model
        self._version = version
        self._server = server
        self._timeout_s = timeout_s
        self._clock = clock
        self._deadline_s = clock() + timeout_s
        self._delay_s = FIRST_DELAY_S
        self._state = "the server does not answer"

    def remaining_s(self) -> float:
        """Seconds that are left.

        Raises:
            NotReady: None are.
        """
        left_s = self._deadline_s - self._clock()
        if left_s <= 0:
            version = f" version {self._version}" if self._version else ""
            what = f"model {self._model}{version} at {self._server}"
            raise NotReady(what, after_s=self._timeout_s, reason=self._state)
        return left_s

    def look_at(self, index: Sequence[ModelInfo]) -> None:
        """Take note of what the server says about the model.

        Raises:
            ModelNotReady: It could not be loaded: waiting longer will not help.
        """
        entries = [e for e in index if e.name == self._model and self._version in ("", e.version)]
        for entry in entries:
            if entry.failed:
                detail = f"model {entry.name!r} version {entry.version} could not be loaded: {entry.reason.strip()}"
                raise ModelNotReady(detail, server=self._server, status=entry.state)
        self._state = ", ".join(sorted({e.reason or e.state.lower() for e in entries})) or "the server does not know it"

    def next_delay_s(self) -> float:
        """Seconds until the next question; never past the deadline."""
        delay_s = min(self._delay_s, self.remaining_s())
        self._delay_s = min(self._delay_s * 1.5, LONGEST_DELAY_S)
        return delay_s
