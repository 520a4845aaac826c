"""One version from its checkpoint to a compiled engine, in a folder of its own beside the repository."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version as package_version
from pathlib import Path

from tritonforge import __version__
from tritonforge.artifacts import EngineArtifact, TokenizerArtifact
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.prove_tokenizer import prove_tokenizer
from tritonforge.checkpoint.source import SourceCheckpoint, open_checkpoint
from tritonforge.checkpoint.tokenizer import find_tokenizer
from tritonforge.engine.build import build
from tritonforge.errors import UsageBug
from tritonforge.events import OnEvent
from tritonforge.pipeline.plan import VersionPlan
from tritonforge.pipeline.sources import checkpoint_folder
from tritonforge.repository.manifest import Manifest
from tritonforge.spec.model import ResolvedVersion
from tritonforge.spec.openvino import OpenVinoEngineSpec


@dataclass(frozen=True, slots=True)
class CompiledVersion:
    """A version that is ready to be rendered.

    Args:
        version: What was asked for, with limits that fit the model.
        engine: Its engine.
        tokenizer: Its tokenizer.
        manifest: What it was made from.
        took_s: Seconds from checkpoint to engine.
    """

    version: ResolvedVersion
    engine: EngineArtifact
    tokenizer: TokenizerArtifact
    manifest: Manifest
    took_s: float


def compile_version(plan: VersionPlan, folder: Path, *, cache: Path, on_event: OnEvent) -> CompiledVersion:
    """Convert and compile one version.

    Args:
        plan: The version.
        folder: Where the TensorRT-LLM checkpoint and the engine go.
        cache: Where imported GGUF files are kept.
        on_event: Called with one line per step.

    Raises:
        CheckpointError: The checkpoint cannot be converted.
        BuildError: The engine cannot be compiled.
    """
    started = time.monotonic()
    version = plan.version
    engine_spec = version.engine
    if not isinstance(engine_spec, OpenVinoEngineSpec):
        raise UsageBug(f"{engine_spec.kind} was not refused by the plan")
    name = f"{version.model_name}-v{version.number}"
    folder_of_source = checkpoint_folder(plan.source, digest=plan.checkpoint_digest, cache=cache, on_event=on_event)
    source = open_checkpoint(folder_of_source)
    tokenizer = find_tokenizer(source)
    prove_tokenizer(source, tokenizer)
    checkpoint = convert(
        source.folder,
        folder / f"{name}-checkpoint",
        dtype=_checkpoint_dtype(engine_spec, source),
        for_engine="openvino",
        on_event=on_event,
    )
    version = replace(version, limits=version.limits.fitted_to(checkpoint.config.max_position_embeddings))
    engine = build(engine_spec, checkpoint, folder / f"{name}-engine", limits=version.limits, on_event=on_event)
    shutil.rmtree(checkpoint.path)  # as large as the model: not kept while the next version is built
    return CompiledVersion(version, engine, tokenizer, _manifest(plan), time.monotonic() - started)


def _checkpoint_dtype(engine: OpenVinoEngineSpec, source: SourceCheckpoint) -> str:
    """Dtype of the checkpoint between source and engine. Integer weights are rounded once, from the source's own."""
    if engine.precision in ("float32", "float16"):
        return engine.precision
    stored = {source.weights.info(name).dtype for name in source.weights.names()}
    return "float32" if "F32" in stored else source.config.dtype


def _manifest(plan: VersionPlan) -> Manifest:
    version = plan.version
    return Manifest(
        model=version.model_name,
        version=version.number,
        kind=version.engine.kind,
        checkpoint_digest=plan.checkpoint_digest,
        spec_digest=plan.spec_digest,
        settings=plan.settings,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tools={"tritonforge": __version__, "openvino": package_version("openvino")},
    )
