"""Tasks run at once within their memory, and none begins after a failure."""

import threading

import pytest

from tritonforge.checkpoint.work import Task, run_tasks

DEADLINE_S = 30


def test_all_tasks_are_done() -> None:
    done: list[int] = []
    run_tasks([Task(lambda i=i: done.append(i), 1) for i in range(100)], threads=4, budget_bytes=2)
    assert sorted(done) == list(range(100))


def test_tasks_run_at_once() -> None:
    both = threading.Barrier(2, timeout=DEADLINE_S)
    run_tasks([Task(lambda: both.wait() and None, 1)] * 2, threads=2, budget_bytes=2)


def test_no_more_memory_is_taken_than_is_given_but_for_one_alone() -> None:
    lock, taken, seen = threading.Lock(), [], []

    def task(size: int) -> Task:
        def run() -> None:
            with lock:
                taken.append(size)
                seen.append((sum(taken), len(taken)))
            with lock:
                taken.remove(size)

        return Task(run, size)

    run_tasks([task(size) for size in [3, 4, 20, 5, 6, 1, 20, 2] * 20], threads=4, budget_bytes=10)
    assert len(seen) == 160
    assert all(total <= 10 or count == 1 for total, count in seen)


def test_the_first_failure_is_raised_and_nothing_begins_after_it() -> None:
    done: list[int] = []

    def fail() -> None:
        raise ValueError("broken")

    tasks = [Task(lambda: done.append(0), 1), Task(fail, 1), *(Task(lambda: done.append(1), 1) for _ in range(50))]
    with pytest.raises(ValueError, match="broken"):
        run_tasks(tasks, threads=1, budget_bytes=1)
    assert done == [0]


def test_an_interrupt_waits_for_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), []

    def slow() -> None:
        begun.set()
        stopped.wait(DEADLINE_S)
        ended.append(1)

    stopped = threading.Event()

    def interrupted(*_: object) -> None:
        assert begun.wait(DEADLINE_S)
        stopped.set()
        raise KeyboardInterrupt

    monkeypatch.setattr("tritonforge.checkpoint.work._Queue.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_tasks([Task(slow, 1), *[Task(lambda: ended.append(2), 1)] * 9], threads=1, budget_bytes=1)
    assert ended[0] == 1
    assert len(ended) < 10


def test_a_second_interrupt_does_not_end_the_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    running, release = threading.Event(), threading.Event()
    ended: list[int] = []

    def slow() -> None:
        running.set()
        assert release.wait(DEADLINE_S)
        ended.append(1)

    class Impatient(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            if not release.is_set():
                release.set()
                raise KeyboardInterrupt
            super().join(timeout)

    def interrupted(*_: object) -> None:
        assert running.wait(DEADLINE_S)
        raise KeyboardInterrupt

    monkeypatch.setattr("tritonforge.checkpoint.work.threading.Thread", Impatient)
    monkeypatch.setattr("tritonforge.checkpoint.work._Queue.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_tasks([Task(slow, 1)], threads=1, budget_bytes=1)
    assert ended == [1]


def test_nothing_to_do_is_done() -> None:
    run_tasks([], threads=2, budget_bytes=1)
