"""What is run to build one TensorRT-LLM engine, and where, as a value. Pure, but for the ids of the user who asks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tritonforge.engine.tensorrt_llm.argv import build_argv
from tritonforge.releases.table import find_release
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

Gpus = tuple[int, ...] | Literal["all"] | None

# Where a container sees the two folders.
CHECKPOINT_IN_CONTAINER = "/tritonforge/checkpoint"
ENGINE_IN_CONTAINER = "/tritonforge/engine"
# Docker gives 64 MiB, too little for the workers of a build, which hand tensors to each other this way. A limit only.
SHARED_MEMORY_BYTES = 2 * 1024**3
# The caller's uid has no entry in the container's /etc/passwd: no home, and no name for what asks for one.
ENV_IN_CONTAINER = {"HOME": "/tmp", "USER": "tritonforge", "LOGNAME": "tritonforge"}
# Each line is told when it is written, not when some buffer is full.
ENV = {"PYTHONUNBUFFERED": "1"}


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
        cwd: Working directory as the program sees it. It is the engine's folder, since old releases write a file of
            timings into whatever folder they are started in.
        image: Container image; None when the program runs on this machine itself.
        mounts: Folders that the container sees.
        gpus: Ids of the GPUs that the program sees, ``all``, or None for no GPU at all.
        shm_bytes: Shared memory of the container.
        user: ``uid:gid`` that the container runs as, so that the files belong to the caller; empty when the program
            runs on this machine itself.
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


def image_of(spec: TensorRtLlmEngineSpec) -> str | None:
    """The image that an engine is built in; None when it is built on this machine itself.

    Raises:
        SpecError: The release is not known.
    """
    if spec.executor == "local":
        return None
    return spec.image or find_release(spec.release).container.image


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
    checkpoint, out = checkpoint.absolute(), out.absolute()
    gpus: Gpus = spec.gpus or "all"
    if spec.executor == "local":
        argv = build_argv(spec, limits, dtype=dtype, checkpoint=str(checkpoint), out=str(out))
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, spec.gpus))} if spec.gpus else {}
        return BuildCommand(argv, cwd=str(out), gpus=gpus, env=ENV | visible)
    return BuildCommand(
        build_argv(spec, limits, dtype=dtype, checkpoint=CHECKPOINT_IN_CONTAINER, out=ENGINE_IN_CONTAINER),
        cwd=ENGINE_IN_CONTAINER,
        image=image_of(spec),
        mounts=(
            Mount(checkpoint, CHECKPOINT_IN_CONTAINER, read_only=True),
            Mount(out, ENGINE_IN_CONTAINER, read_only=False),
        ),
        gpus=gpus,
        shm_bytes=SHARED_MEMORY_BYTES,
        user=f"{os.getuid()}:{os.getgid()}",
        env=ENV | ENV_IN_CONTAINER,
    )
