"""SIGTERM and SIGHUP as an exception, so that a command cleans up before it ends."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn


class StopRequested(BaseException):
    """Somebody has asked this process to end. Not an `Exception`, like `KeyboardInterrupt`.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def raise_when_stopped() -> Iterator[None]:
    """Run a block in which a request to stop raises `StopRequested`; a second one interrupts the clean-up too.

    Python takes signals in the main thread only: in others, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # One that is ignored stays so: nohup has asked for it.
    signals = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is not signal.SIG_IGN]
    before = [signal.signal(number, _stop) for number in signals]
    try:
        yield
    finally:
        for number, action in zip(signals, before, strict=True):
            signal.signal(number, action)


@contextlib.contextmanager
def until_stopped() -> Iterator[None]:
    """Run a block until it ends or the process is asked to stop, which is its ordinary end."""
    with contextlib.suppress(StopRequested), raise_when_stopped():
        yield


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    raise StopRequested(number)
