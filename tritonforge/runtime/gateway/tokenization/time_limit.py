"""Ends foreign code that takes too long, in the thread that runs it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

ResultT = TypeVar("ResultT")


class TookTooLong(Exception):
    """The work was ended at its time limit."""


def run_within(limit_s: float, work: Callable[[], ResultT]) -> ResultT:
    """What `work` returns.

    A loop of Python code is ended within milliseconds of its limit; a call into C code only when it returns.

    Args:
        limit_s: Seconds for the work.
        work: May be ended between any two of its instructions; it must not hold locks.

    Raises:
        TookTooLong: The limit was reached.
    """
    watchdog = _Watchdog(limit_s)
    try:
        try:
            watchdog.watch()
            return work()
        finally:
            watchdog.dismiss()
    except _TimeIsUp as error:
        # It may have come while the watchdog was being dismissed.
        watchdog.dismiss()
        raise TookTooLong(f"took longer than {limit_s:g} s") from error


class _TimeIsUp(BaseException):  # not an Exception: foreign code may catch those
    pass


class _Watchdog:
    """Raises `_TimeIsUp` in the thread that made it, unless it is dismissed before."""

    def __init__(self, limit_s: float) -> None:
        self._thread_id = ctypes.c_ulong(threading.get_ident())
        # Reentrant, because the exception may come while the same thread holds it.
        self._lock = threading.RLock()
        self._is_dismissed = False
        self._timer = threading.Timer(limit_s, self._bite)
        self._timer.daemon = True

    def watch(self) -> None:
        """Begin to count."""
        self._timer.start()

    def dismiss(self) -> None:
        """Make sure that nothing is raised from now on."""
        with self._lock:
            self._is_dismissed = True
            # One that is on its way, but has not arrived, is taken back.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread_id, None)
        self._timer.cancel()

    def _bite(self) -> None:
        with self._lock:
            if not self._is_dismissed:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread_id, ctypes.py_object(_TimeIsUp))
