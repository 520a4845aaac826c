"""Stage checkpoint: Hugging Face folder → TensorRT-LLM checkpoint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tritonforge.artifacts import CheckpointArtifact
from tritonforge.checkpoint.digest import checkpoint_digest
from tritonforge.checkpoint.execute import do_jobs
from tritonforge.checkpoint.families.base import ENGINES, TENSORRT_LLM
from tritonforge.checkpoint.jobs import FullTensor
from tritonforge.checkpoint.limits import check_options
from tritonforge.checkpoint.options import DEFAULTS, ConvertOptions
from tritonforge.checkpoint.output import check_free, output_folder
from tritonforge.checkpoint.plan import plan_jobs, target_config
from tritonforge.checkpoint.rank_files import rank_files
from tritonforge.checkpoint.source import open_checkpoint
from tritonforge.errors import UsageBug
from tritonforge.events import OnEvent, OnProgress, ignore, ignore_progress
from tritonforge.formats.trtllm import CONFIG_NAME, TrtllmConfig
from tritonforge.formats.trtllm_lines import config_json
from tritonforge.releases.checkpoint_rules import config_features
from tritonforge.releases.table import find_release


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
    tensors = [tensor for job in jobs for tensor in job.tensors]
    on_event(f"converting {checkpoint.architecture}: {_told(tensors, config)}")
    for note in notes:
        on_event(f"note: {note}")
    with output_folder(out) as folder:
        with rank_files(folder, tensors, config) as files:
            do_jobs(jobs, files, on_progress)
        (folder / CONFIG_NAME).write_text(json.dumps(content, indent=2) + "\n")
    on_event(f"wrote {out}")
    return CheckpointArtifact(path=out, config=config, source=source, digest=digest)


def _told(tensors: Sequence[FullTensor], config: TrtllmConfig) -> str:
    ranks = f" for {config.world_size} ranks" if config.world_size > 1 else ""
    return f"{len(tensors)} tensors to {config.quant_algo or config.dtype}{ranks}"
