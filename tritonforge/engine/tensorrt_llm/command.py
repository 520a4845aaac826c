"""What is run to build one TensorRT-LLM engine, and where, as a value. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

Gpus = tuple[int, ...] | Literal["all"] | None


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of this machine that a container sees.

    Args:
        host: The folder here, absolute.
        container: Where the container sees it.
        read_only: Whether the container may only read it.
    """

    host: Path
    container: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class BuildCommand:
    """One run of trtllm-build.

    Args:
        argv: Program and arguments; paths as the program sees them.
        cwd: Working directory as the program sees it.
        image: Container image; None when the program runs on this machine itself.
        mounts: Folders that the container sees.
        gpus: Ids of the GPUs that the program sees, ``all``, or None for no GPU at all.
        shm_bytes: Shared memory of the container.
        user: ``uid:gid`` that the container runs as; empty when the program runs on this machine itself.
        env: Variables set on top of the image's, or of this process's.
    """

    argv: tuple[str, ...]
    cwd: str
    image: str | None = None
    mounts: tuple[Mount, ...] = ()
    gpus: Gpus = "all"
    shm_bytes: int = 0
    user: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


def plan_command(
    spec: TensorRtLlmEngineSpec, limits: LimitsSpec, *, dtype: str, checkpoint: Path, out: Path
) -> BuildCommand:
    """The command that builds an engine.

    Args:
        spec: The engine.
        limits: Limits that it is to keep.
        dtype: Float dtype of the checkpoint.
        checkpoint: Folder of the TensorRT-LLM checkpoint.
        out: Folder for the engine.

    Raises:
        SpecError: The release cannot do what the spec asks for.
    """
    raise NotImplementedError
