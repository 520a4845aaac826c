"""When a call has to end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """One deadline for all that a call needs: connecting, every request, every read.

    Args:
        timeout_s: Seconds that the caller gave, for messages.
        ends_s: When it ends, by `clock`.
        clock: Gives seconds, never backwards.
    """

    timeout_s: float
    ends_s: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, timeout_s: float, *, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """The deadline that is so many seconds from now."""
        return cls(timeout_s, clock() + timeout_s, clock)

    def remaining_s(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self.ends_s - self.clock())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.remaining_s() <= 0
