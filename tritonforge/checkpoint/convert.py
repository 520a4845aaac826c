"""Stage checkpoint: Hugging Face folder → TensorRT-LLM checkpoint."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tritonforge.artifacts import CheckpointArtifact
from tritonforge.checkpoint.digest import checkpoint_digest
from tritonforge.checkpoint.families.base import ENGINES, TENSORRT_LLM
from tritonforge.checkpoint.jobs import AnyJob, FullTensor, Job, StreamJob
from tritonforge.checkpoint.limits import check_options
from tritonforge.checkpoint.options import DEFAULTS, ConvertOptions
from tritonforge.checkpoint.output import check_free, output_folder
from tritonforge.checkpoint.plan import plan_jobs, target_config
from tritonforge.checkpoint.rank_files import RankFiles, rank_files
from tritonforge.checkpoint.source import open_checkpoint
from tritonforge.checkpoint.work import Task, run_tasks
from tritonforge.errors import UsageBug
from tritonforge.events import OnEvent, OnProgress, ignore, ignore_progress
from tritonforge.formats.safetensors import Array
from tritonforge.formats.safetensors_writer import TensorForm, check_made
from tritonforge.formats.trtllm import CONFIG_NAME, TrtllmConfig
from tritonforge.formats.trtllm_lines import config_json
from tritonforge.releases.checkpoint_rules import config_features
from tritonforge.releases.table import find_release

# Whole tensors that are under way may take this much together; the rest of a gigabyte is for Python and numpy.
_BUDGET_BYTES = 512 << 20
_BLOCK_BYTES = 512 << 10  # what passes from file to file at a time: it stays in the cache of a core
_TASK_BYTES = 16 << 20
_MOST_THREADS = 4


def convert(
    source: Path,
    out: Path,
    options: ConvertOptions = DEFAULTS,
    *,
    for_engine: str = TENSORRT_LLM,
    on_event: OnEvent = ignore,
    on_progress: OnProgress = ignore_progress,
) -> CheckpointArtifact:
    """Convert a checkpoint to the TensorRT-LLM format.

    Everything is checked before anything is written. The files are made beside `out` and appear there together by a
    rename; a run that fails or is interrupted leaves nothing behind. Memory does not grow with the model: tensors pass
    in blocks, and those that have to be made whole share half a gigabyte, or have more than that for one alone.

    Args:
        source: Hugging Face folder.
        out: Folder to make; must not exist, or be empty.
        options: Number formats, ranks, and the release that will read the result.
        for_engine: tensorrt_llm or openvino; the embedded engine serves some models that TensorRT-LLM does not.
        on_event: Called with one line per step.
        on_progress: Called with the bytes made so far and in all, from several threads, one at a time.

    Returns:
        The checkpoint made.

    Raises:
        CheckpointError: The source is unsupported or damaged (see `open_checkpoint`), the release cannot take what
            was asked for, a value does not fit the dtype, `out` is taken, or the disk is full.
        UsageBug: `for_engine` is none of the above.
    """
    if for_engine not in ENGINES:
        raise UsageBug(f"convert(for_engine={for_engine!r})")
    checkpoint = open_checkpoint(source)
    notes = check_options(checkpoint, options, for_engine)
    check_free(out)
    digest = checkpoint_digest(source)
    config = target_config(checkpoint, options)
    content = config_json(config, config_features(find_release(options.release)))
    jobs = plan_jobs(checkpoint, config, options)
    tensors = [tensor for job in jobs for tensor in _tensors(job)]
    on_event(f"converting {checkpoint.architecture}: {_told(tensors, config)}")
    for note in notes:
        on_event(f"note: {note}")
    with output_folder(out) as folder:
        with rank_files(folder, tensors, config) as files:
            _do(jobs, files, on_progress)
        (folder / CONFIG_NAME).write_text(json.dumps(content, indent=2) + "\n")
    on_event(f"wrote {out}")
    return CheckpointArtifact(path=out, config=config, source=source, digest=digest)


def _told(tensors: Sequence[FullTensor], config: TrtllmConfig) -> str:
    ranks = f" for {config.world_size} ranks" if config.world_size > 1 else ""
    return f"{len(tensors)} tensors to {config.quant_algo or config.dtype}{ranks}"


def _tensors(job: AnyJob) -> tuple[FullTensor, ...]:
    return job.tensors if isinstance(job, Job) else (job.tensor,)


def _do(jobs: Sequence[AnyJob], files: RankFiles, on_progress: OnProgress) -> None:
    counter = _Counter(sum(tensor.size_bytes for job in jobs for tensor in _tensors(job)), on_progress)
    tasks = [task for job in jobs for task in _tasks(job, files, counter)]
    run_tasks(tasks, threads=min(_MOST_THREADS, os.cpu_count() or 1), budget_bytes=_BUDGET_BYTES)


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
        yield Task(run, 4 * max(_BLOCK_BYTES, row_bytes))


def _make_whole(job: Job, files: RankFiles, counter: _Counter) -> None:
    made: Sequence[Array] = job.make()
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
