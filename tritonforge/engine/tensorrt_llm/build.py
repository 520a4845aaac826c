"""Stage engine: TensorRT-LLM checkpoint → folder with the engines that trtllm-build makes, one for each rank."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from tritonforge.artifacts import CheckpointArtifact, EngineArtifact
from tritonforge.engine.tensorrt_llm.command import image_of, plan_command
from tritonforge.engine.tensorrt_llm.executor import Executor, executor_for
from tritonforge.engine.writing import naming
from tritonforge.errors import BuildError, CheckpointError, CheckpointNotFound
from tritonforge.events import OnEvent, ignore
from tritonforge.formats.input_file import has_file
from tritonforge.formats.trtllm import CONFIG_NAME, rank_file_name
from tritonforge.formats.trtllm_engine import EngineInfo, read_engine_folder, same_release
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec
from tritonforge.staging import staged_folder

# Releases before 0.11 leave the timings of kernels under this name in the folder that they were started in.
_TIMING_CACHE = "model.cache"
# What importing TensorRT-LLM prints (from memory of it): known after seconds instead of at the end of the build.
_SAYS_VERSION = re.compile(r"TensorRT-LLM version: (?P<version>\d\S*)")
_MADE_HINT = "see in the log what it did, and whether trtllm-build is the release's own"
_RELEASE_HINT = "an engine runs with the release that built it: correct engine.release, or engine.image"


def prepare_build(spec: TensorRtLlmEngineSpec, *, on_event: OnEvent = ignore, executor: Executor | None = None) -> None:
    """Refuse a build for want of something on this machine before its checkpoint is converted.

    Args:
        spec: The engine.
        on_event: Called with one line per step.
        executor: Who is to run trtllm-build; None takes the one that the spec names.

    Raises:
        SpecError: The release is not known.
        ToolMissing: There is no trtllm-build.
        ContainerError: There is no container engine or no image.
        BuildError: trtllm-build is of another release.
    """
    (executor or executor_for(spec)).prepare(image_of(spec), on_event=on_event)


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
        CheckpointNotFound: The checkpoint lacks a file.
        ToolMissing: There is no trtllm-build.
        ContainerError: There is no container engine, no image, or no GPU.
        CommandFailed: trtllm-build failed; the error has its last lines and names the log.
        BuildError: What it made is not what was asked for, or cannot be written.
    """
    _check_checkpoint(spec, checkpoint)
    executor = executor or executor_for(spec)
    with naming(out), staged_folder(out, replace=True) as folder:
        command = plan_command(spec, limits, dtype=checkpoint.config.dtype, checkpoint=checkpoint.path, out=folder)
        executor.run(command, log=log, on_event=_watching(spec, log, on_event))
        (folder / _TIMING_CACHE).unlink(missing_ok=True)
        made = _read(folder, log)
        check_engine(made, spec, limits, folder=out, log=log)
    return EngineArtifact(
        path=out, kind=spec.kind, files=made.files, vocab_size=made.vocab_size, weights_bytes=made.weights_bytes
    )


def _watching(spec: TensorRtLlmEngineSpec, log: Path, on_event: OnEvent) -> OnEvent:
    """Pass each line on, and end the build at the line that shows another release: its engine would be refused."""

    def watch(line: str) -> None:
        on_event(line)
        said = _SAYS_VERSION.search(line)
        if said is not None and not same_release(said["version"], spec.release):
            raise BuildError(
                f"trtllm-build is of TensorRT-LLM {said['version']}; expected {spec.release}, the spec's "
                f"engine.release (log: {log})",
                hint=_RELEASE_HINT,
            )

    return watch


def _read(folder: Path, log: Path) -> EngineInfo:
    """What trtllm-build has made. A message names its log, and not the folder, which is gone when it is read.

    Only ordinary files can be kept and published: a pipe would be waited for without end, and a link shares its file
    with whatever it leads to.
    """
    for path in sorted(folder.rglob("*")):
        kind = path.lstat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) or not _has_plain_name(path):
            name = os.fsencode(path.relative_to(folder)).decode(errors="backslashreplace")
            raise BuildError(
                f"trtllm-build ended without an error, but made {name}; expected ordinary files with names in UTF-8 "
                f"(log: {log})",
                hint=_MADE_HINT,
            )
    try:
        return read_engine_folder(folder)
    except (BuildError, CheckpointError) as error:
        what = error.message.replace(str(folder), "the engine folder")
        raise BuildError(f"trtllm-build ended without an error, but {what} (log: {log})", hint=_MADE_HINT) from error


def _has_plain_name(path: Path) -> bool:
    try:
        path.name.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_engine(made: EngineInfo, spec: TensorRtLlmEngineSpec, limits: LimitsSpec, *, folder: Path, log: Path) -> None:
    """Refuse an engine that is not what was asked for. Pure.

    Args:
        made: The engine.
        spec: What was asked for.
        limits: Limits that were asked for.
        folder: Where the engine is to be, for the message.
        log: What trtllm-build wrote, for the message.

    Raises:
        BuildError: Its release, its ranks or its limits are others.
    """
    if not same_release(made.version, spec.release):
        raise BuildError(
            f"{folder}: the engine is of TensorRT-LLM {made.version}; expected {spec.release}, the spec's "
            f"engine.release (log: {log})",
            hint=_RELEASE_HINT,
        )
    differences = [
        f"{name} is {found}, expected {asked}"
        for name, asked, found in (
            ("tp_size", spec.tensor_parallel, made.tp_size),
            ("pp_size", spec.pipeline_parallel, made.pp_size),
            ("max_batch_size", limits.max_batch_size, made.max_batch_size),
            ("max_input_len", limits.max_input_len, made.max_input_len),
            ("max_seq_len", limits.max_seq_len, made.max_seq_len),
            ("max_beam_width", limits.max_beam_width, made.max_beam_width),
            ("max_num_tokens", _expected_num_tokens(made, limits), made.max_num_tokens),
        )
        if found != asked
    ]
    if differences:
        raise BuildError(
            f"{folder}: the engine is not what was asked for: {'; '.join(differences)} (log: {log})",
            hint="trtllm-build says in the log why it took other values: adapt limits to them",
        )


def _expected_num_tokens(made: EngineInfo, limits: LimitsSpec) -> int | None:
    """Left out, the release chooses. trtllm-build lowers it to what the other limits can ever fill (from memory)."""
    if limits.max_num_tokens is None:
        return made.max_num_tokens
    return min(limits.max_num_tokens, limits.max_batch_size * limits.max_seq_len)


def _check_checkpoint(spec: TensorRtLlmEngineSpec, checkpoint: CheckpointArtifact) -> None:
    config = checkpoint.config
    if (config.tp_size, config.pp_size) != (spec.tensor_parallel, spec.pipeline_parallel):
        raise BuildError(
            f"{checkpoint.path}: is split into {config.tp_size} × {config.pp_size} ranks (tensor × pipeline); expected "
            f"{spec.tensor_parallel} × {spec.pipeline_parallel}, as engine.tensor_parallel and pipeline_parallel say",
            hint="convert the checkpoint again, with --tp and --pp",
        )
    for name in (CONFIG_NAME, *map(rank_file_name, range(config.world_size))):
        if not has_file(checkpoint.path / name):
            raise CheckpointNotFound(
                f"{checkpoint.path / name}: no such file; expected {CONFIG_NAME} and the weights of "
                f"{config.world_size} ranks",
                hint="convert the checkpoint again",
            )
