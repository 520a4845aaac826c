"""Locks on files: alone or together, with a word on whom one waits for, and free again when their holder dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tritonforge.locks import FileLock, LockHolder, read_holder

HOLD = """
import sys, time
from pathlib import Path
from tritonforge.locks import FileLock
with FileLock(Path(sys.argv[1]), purpose="sleep") as lock:
    assert lock.acquire(wait_s=0)
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_holder_is_told_to_those_who_wait(tmp_path: Path) -> None:
    told: list[LockHolder | None] = []
    path = tmp_path / "lock"

    with FileLock(path, purpose="first") as first, FileLock(path, purpose="second", on_wait=told.append) as second:
        assert first.acquire(wait_s=0)
        assert not second.acquire(wait_s=0.1)

    assert told == [LockHolder(os.getpid(), "first")]


def test_readers_share_and_a_writer_waits_for_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        FileLock(path, purpose="read") as one,
        FileLock(path, purpose="read") as other,
        FileLock(path, purpose="write") as writer,
    ):
        assert one.acquire(wait_s=0, shared=True)
        assert other.acquire(wait_s=0, shared=True)
        assert not writer.acquire(wait_s=0)
        assert not one.acquire(wait_s=0)  # the other reads still; and what it had is given up
        assert other.acquire(wait_s=0)


def test_a_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with FileLock(path, purpose="mine") as mine:
            assert not mine.acquire(wait_s=0)
            assert read_holder(path) == LockHolder(child.pid, "sleep")

            child.send_signal(signal.SIGKILL)
            child.wait(timeout=30)

            assert mine.acquire(wait_s=30)
    finally:
        child.kill()
        child.communicate(timeout=30)


@pytest.mark.parametrize("text", ["", "[]", '{"pid": 1e999, "purpose": ""}', "[" * 100_000])
def test_a_lock_file_that_says_nothing_readable_has_no_known_holder(tmp_path: Path, text: str):
    path = tmp_path / "lock"
    path.write_text(text)

    assert read_holder(path) is None
