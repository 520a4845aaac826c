"""Foreign code that takes too long is ended, and what comes after it is left alone."""

from __future__ import annotations

import contextlib
import time

import pytest

from tritonforge.runtime.gateway.tokenization.time_limit import TookTooLong, run_within


def spin(seconds: float) -> str:
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        pass
    return "done"


def swallow_exceptions(seconds: float) -> None:
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        with contextlib.suppress(Exception):
            spin(seconds)


def test_work_within_its_time_is_not_disturbed() -> None:
    assert run_within(20, lambda: spin(0)) == "done"


def test_errors_of_the_work_pass_through() -> None:
    with pytest.raises(ZeroDivisionError):
        run_within(20, lambda: 1 // 0)


@pytest.mark.parametrize("work", [spin, swallow_exceptions])
def test_a_loop_is_ended(work: object) -> None:
    start_s = time.monotonic()
    with pytest.raises(TookTooLong, match=r"took longer than 0\.05 s"):
        run_within(0.05, lambda: work(20))  # type: ignore[operator]
    assert time.monotonic() - start_s < 5


def test_work_that_ends_at_its_limit_gives_one_of_both_and_nothing_afterwards() -> None:
    outcomes = set()
    for step in range(200):
        try:
            outcomes.add(run_within(0.002, lambda step=step: spin(step * 6e-5)))
        except TookTooLong:
            outcomes.add("ended")
        spin(0.0005)  # an exception that comes late would come here
    assert outcomes <= {"done", "ended"}
