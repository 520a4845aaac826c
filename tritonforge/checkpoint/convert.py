"""Stage checkpoint: Hugging Face folder → TensorRT-LLM checkpoint."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from tritonforge.artifacts import CheckpointArtifact
from tritonforge.checkpoint.digest import checkpoint_digest
from tritonforge.checkpoint.families.base import ENGINES, TENSORRT_LLM
from tritonforge.checkpoint.mapping import plan_tensors
from tritonforge.checkpoint.output import check_free, output_folder
from tritonforge.checkpoint.source import SourceCheckpoint, open_checkpoint
from tritonforge.errors import UnsupportedModel, UsageBug
from tritonforge.events import OnEvent, ignore
from tritonforge.formats.safetensors import write_tensors
from tritonforge.formats.trtllm import CONFIG_NAME, FLOAT_TYPES, rank_file_name

AUTO = "auto"


def convert(
    source: Path,
    out: Path,
    *,
    dtype: str = AUTO,
    for_engine: str = TENSORRT_LLM,
    on_event: OnEvent = ignore,
) -> CheckpointArtifact:
    """Convert a checkpoint to the TensorRT-LLM format, for a single rank.

    Everything is checked before anything is written. The files are made beside `out` and appear there together by a
    rename; a run that fails or is interrupted leaves nothing behind. One tensor is in memory at a time.

    Args:
        source: Hugging Face folder.
        out: Folder to make; must not exist, or be empty.
        dtype: float16, bfloat16, float32, or auto: the source's, but float16 for float32.
        for_engine: tensorrt_llm or openvino; the embedded engine serves some models that TensorRT-LLM does not.
        on_event: Called with one line per step.

    Returns:
        The checkpoint made.

    Raises:
        CheckpointError: The source is unsupported or damaged (see `open_checkpoint`), a value does not fit the dtype,
            `out` is taken, or the disk is full.
        UsageBug: `dtype` or `for_engine` is none of the above.
    """
    if dtype not in (AUTO, *FLOAT_TYPES) or for_engine not in ENGINES:
        raise UsageBug(f"convert(dtype={dtype!r}, for_engine={for_engine!r})")
    checkpoint = open_checkpoint(source)
    _check_engine(checkpoint, for_engine)
    check_free(out)
    digest = checkpoint_digest(source)
    config = checkpoint.config if dtype == AUTO else dataclasses.replace(checkpoint.config, dtype=dtype)
    tensors = plan_tensors(checkpoint, config.dtype)
    on_event(f"converting {checkpoint.architecture}: {len(tensors)} tensors to {config.dtype}")
    with output_folder(out) as folder:
        write_tensors(folder / rank_file_name(0), tensors, {"format": "pt"})
        (folder / CONFIG_NAME).write_text(json.dumps(config.to_json(), indent=2) + "\n")
    on_event(f"wrote {out}")
    return CheckpointArtifact(path=out, config=config, source=source, digest=digest)


def _check_engine(checkpoint: SourceCheckpoint, engine: str) -> None:
    reasons = checkpoint.engine_reasons.get(engine, ())
    if reasons:
        others = [name for name in ENGINES if name != engine and not checkpoint.engine_reasons.get(name)]
        raise UnsupportedModel(
            f"{checkpoint.folder} ({checkpoint.architecture}) on {engine}",
            reasons,
            hint=f"the engine {others[0]} can serve it" if others else None,
        )
