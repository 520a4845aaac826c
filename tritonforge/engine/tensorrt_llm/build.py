"""Stage engine: TensorRT-LLM checkpoint → folder with the engines that trtllm-build makes, one for each rank."""

from __future__ import annotations

from pathlib import Path

from tritonforge.artifacts import CheckpointArtifact, EngineArtifact
from tritonforge.engine.tensorrt_llm.executor import Executor
from tritonforge.events import OnEvent, ignore
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec


def build_engine(
    spec: TensorRtLlmEngineSpec,
    checkpoint: CheckpointArtifact,
    out: Path,
    *,
    limits: LimitsSpec,
    log: Path,
    on_event: OnEvent = ignore,
    executor: Executor | None = None,
) -> EngineArtifact:
    """Build the engines of one version with trtllm-build.

    The files appear in `out` together, by a rename; whatever was there before is replaced. A failed or cancelled build
    leaves nothing behind but its log.

    Args:
        spec: Release, precision, plugins, and where trtllm-build runs.
        checkpoint: A TensorRT-LLM checkpoint of as many ranks as the spec asks for.
        out: Folder to make.
        limits: Limits that the engine is to keep.
        log: File for what trtllm-build writes; overwritten.
        on_event: Called with one line per step, and with each line that trtllm-build writes.
        executor: Who runs it; None takes the one that the spec names.

    Raises:
        SpecError: The release cannot do what the spec asks for.
        ToolMissing: There is no trtllm-build, no container engine or no image.
        CommandFailed: trtllm-build failed; the error has its last lines and names the log.
        BuildError: What it made is not what was asked for.
    """
    raise NotImplementedError
