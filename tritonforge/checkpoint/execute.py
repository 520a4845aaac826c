"""Doing the jobs of a conversion: what each makes goes to the files of the ranks, and progress is told."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from tritonforge.checkpoint.jobs import AnyJob, Job, StreamJob
from tritonforge.checkpoint.rank_files import RankFiles
from tritonforge.checkpoint.work import Task, run_tasks
from tritonforge.errors import UsageBug
from tritonforge.events import OnProgress
from tritonforge.formats.safetensors_writer import TensorForm, check_made

# Whole tensors that are under way may take this much together; the rest of a gigabyte is for Python and numpy.
_BUDGET_BYTES = 512 << 20
_BLOCK_BYTES = 512 << 10  # what passes from file to file at a time: it stays in the cache of a core
_TASK_BYTES = 16 << 20  # what a thread does of a tensor before another may have its turn
_BUFFERS = 4  # blocks that a thread holds: as stored, as cast, as cut, and one to spare
_MOST_THREADS = 4  # more of them only wait for memory


def do_jobs(jobs: Sequence[AnyJob], files: RankFiles, on_progress: OnProgress) -> None:
    """Do all jobs, several at a time.

    Args:
        jobs: What to make.
        files: Where it goes.
        on_progress: Called with the bytes made so far and in all, from several threads, one at a time.

    Raises:
        CheckpointError: A value cannot be used, a file cannot be read or written.
        UsageBug: A job made something else than planned.
    """
    counter = _Counter(sum(tensor.size_bytes for job in jobs for tensor in job.tensors), on_progress)
    tasks = [task for job in jobs for task in _tasks(job, files, counter)]
    threads = min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    run_tasks(tasks, threads=threads, budget_bytes=_BUDGET_BYTES)


class _Counter:
    """Counts bytes from several threads."""

    def __init__(self, total_bytes: int, on_progress: OnProgress) -> None:
        self._lock = threading.Lock()
        self._done_bytes = 0
        self._total_bytes = total_bytes
        self._on_progress = on_progress

    def add(self, size_bytes: int) -> None:
        with self._lock:
            self._done_bytes += size_bytes
            self._on_progress(self._done_bytes, self._total_bytes)


def _tasks(job: AnyJob, files: RankFiles, counter: _Counter) -> Iterator[Task]:
    if isinstance(job, Job):
        yield Task(partial(_make_whole, job, files, counter), job.working_bytes)
        return
    rows = job.tensor.shape[0]
    row_bytes = job.tensor.size_bytes // rows
    step = max(1, _TASK_BYTES // row_bytes)
    for start in range(0, rows, step):
        run = partial(_stream, job, start, min(start + step, rows), row_bytes, files, counter)
        yield Task(run, _BUFFERS * max(_BLOCK_BYTES, row_bytes))


def _make_whole(job: Job, files: RankFiles, counter: _Counter) -> None:
    made = job.make()
    if len(made) != len(job.tensors):
        raise UsageBug(f"{[tensor.name for tensor in job.tensors]} were planned, {len(made)} tensors made")
    for tensor, values in zip(job.tensors, made, strict=True):
        check_made(TensorForm(tensor.name, tensor.dtype, tensor.shape), values)
        files.place(tensor, 0, np.ascontiguousarray(values))
        counter.add(tensor.size_bytes)


def _stream(job: StreamJob, start: int, stop: int, row_bytes: int, files: RankFiles, counter: _Counter) -> None:
    step = max(1, _BLOCK_BYTES // row_bytes)
    for first in range(start, stop, step):
        last = min(first + step, stop)
        files.place(job.tensor, first, job.read(first, last))
        counter.add((last - first) * row_bytes)
