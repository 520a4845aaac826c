"""SIGTERM and SIGHUP as the ordinary end of a command."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn


class StopRequested(BaseException):
    """Somebody has asked this process to end. Not an `Exception`, like `KeyboardInterrupt`."""


@contextlib.contextmanager
def until_stopped() -> Iterator[None]:
    """Run a block until it ends or the process is asked to stop; the block's own clean-up is run either way.

    A second request interrupts the clean-up too.
    """
    signals = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, _stop) for number in signals]
    try:
        yield
    except StopRequested:
        pass
    finally:
        for number, action in zip(signals, before, strict=True):
            signal.signal(number, action)


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise StopRequested
