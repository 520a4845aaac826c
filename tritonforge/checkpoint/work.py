"""Doing many independent tasks: several at a time, in bounded memory, and none after the first failure."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """Something to be done in a thread.

    Args:
        run: Does it.
        memory_bytes: Memory that it takes at its peak.
    """

    run: Callable[[], None]
    memory_bytes: int


def run_tasks(tasks: Sequence[Task], *, threads: int, budget_bytes: int) -> None:
    """Do all tasks, begun in their order.

    When one fails, or the caller is interrupted, those under way are waited for and no further one begins.

    Args:
        tasks: What to do.
        threads: How many at a time at most.
        budget_bytes: Memory that those under way may take together. A task that needs more alone is done alone.

    Raises:
        BaseException: What the first task that failed raised.
    """
    queue = _Queue(tasks, budget_bytes)
    workers = [threading.Thread(target=queue.work, daemon=True) for _ in range(min(threads, len(tasks)))]
    try:
        for worker in workers:
            worker.start()
        queue.wait()
    except BaseException:
        queue.stop()
        raise
    finally:
        _join(workers)
    queue.raise_failure()


def _join(workers: Sequence[threading.Thread]) -> None:
    """Wait for threads, through interrupts too: one that still writes must not find its files closed."""
    interrupt: BaseException | None = None
    for worker in workers:
        while worker.is_alive():
            try:
                worker.join()
            except BaseException as error:  # noqa: BLE001 - raised again below
                interrupt = error
    if interrupt is not None:
        raise interrupt


class _Queue:
    """Tasks that wait, and the memory of those under way."""

    def __init__(self, tasks: Sequence[Task], budget_bytes: int) -> None:
        self._waiting = deque(tasks)
        self._budget_bytes = budget_bytes
        self._changed = threading.Condition()
        self._running = 0
        self._taken_bytes = 0
        self._failure: BaseException | None = None

    def work(self) -> None:
        """Do tasks until there are none: what a worker thread runs."""
        while (task := self._take()) is not None:
            failure: BaseException | None = None
            try:
                task.run()
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
                failure = error
            self._finish(task, failure)

    def wait(self) -> None:
        """Wait until all are done, or one has failed."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._running)

    def stop(self) -> None:
        """Begin no further task."""
        with self._changed:
            self._waiting.clear()
            self._changed.notify_all()

    def raise_failure(self) -> None:
        """Raise what the first failed task raised, if one did."""
        if self._failure is not None:
            raise self._failure

    def _take(self) -> Task | None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self._fits(self._waiting[0]))
            if not self._waiting:
                return None
            task = self._waiting.popleft()
            self._running += 1
            self._taken_bytes += task.memory_bytes
            return task

    def _fits(self, task: Task) -> bool:
        return not self._running or self._taken_bytes + task.memory_bytes <= self._budget_bytes

    def _finish(self, task: Task, failure: BaseException | None) -> None:
        with self._changed:
            self._running -= 1
            self._taken_bytes -= task.memory_bytes
            if failure is not None:
                self._failure = self._failure or failure
                self._waiting.clear()
            self._changed.notify_all()
