"""One version from its checkpoint to a compiled engine: out of the build cache, or made and put there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tritonforge.artifacts import CheckpointArtifact, EngineArtifact, TokenizerArtifact
from tritonforge.checkpoint.convert import convert
from tritonforge.errors import UsageBug
from tritonforge.events import OnEvent
from tritonforge.formats.trtllm import TrtllmConfig
from tritonforge.pipeline.cache import BuildCache
from tritonforge.pipeline.kinds import KINDS
from tritonforge.pipeline.plan import VersionPlan, plan_recipe
from tritonforge.pipeline.recipe import Conversion, Recipe
from tritonforge.pipeline.sources import Sources
from tritonforge.repository.files import place
from tritonforge.repository.manifest import Manifest
from tritonforge.spec.model import ResolvedVersion


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


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where versions are compiled.

    Args:
        folder: Takes the engines; on the repository's file system.
        logs: Folder for the logs of programs that are run.
        cache: The build cache.
        sources: The checkpoints.
        on_event: Called with one line per step.
    """

    folder: Path
    logs: Path
    cache: BuildCache
    sources: Sources
    on_event: OnEvent


def compile_version(plan: VersionPlan, workplace: Workplace) -> CompiledVersion:
    """Convert and compile one version, or take what was made earlier from the build cache.

    Args:
        plan: The version.
        workplace: Where to do it.

    Raises:
        CheckpointError: The checkpoint cannot be converted.
        BuildError: The engine cannot be compiled, or the cache cannot be written.
    """
    started = time.monotonic()
    source = workplace.sources.open(plan.source, on_event=workplace.on_event)
    recipe = plan.recipe or plan_recipe(plan, source)
    tokenizer = workplace.sources.tokenizer(source)
    engine = _engine(plan, recipe, workplace)
    return CompiledVersion(recipe.version, engine, tokenizer, _manifest(plan, recipe), time.monotonic() - started)


def _engine(plan: VersionPlan, recipe: Recipe, workplace: Workplace) -> EngineArtifact:
    """The engine in the workplace, as links to the files of the cache where they are on one file system."""
    build, key, conversion = KINDS[recipe.version.engine.kind].build, recipe.engine_key, recipe.conversion
    if build is None or key is None or conversion is None:
        raise UsageBug(f"{recipe.version.engine.kind} is compiled, but its recipe does not say how")
    name = f"{plan.version.model_name}-v{plan.version.number}"

    def make(out: Path) -> Mapping[str, object]:
        with _checkpoint(plan, recipe, conversion, workplace) as checkpoint:
            log = workplace.logs / f"build-{name}.log"
            engine = build(recipe, checkpoint, out, log=log, on_event=workplace.on_event)
        return {"vocab_size": engine.vocab_size, "weights_bytes": engine.weights_bytes}

    out = workplace.folder / f"{name}-engine"
    with workplace.cache.entry(key, make, made_for=plan.label, on_event=workplace.on_event) as entry:
        for file in entry.contents:
            place(entry.files / file, out / file)
        return EngineArtifact(
            path=out,
            kind=recipe.version.engine.kind,
            files=tuple(sorted(entry.contents)),
            vocab_size=int(str(entry.about["vocab_size"])),
            weights_bytes=int(str(entry.about["weights_bytes"])),
        )


@contextmanager
def _checkpoint(
    plan: VersionPlan, recipe: Recipe, conversion: Conversion, workplace: Workplace
) -> Iterator[CheckpointArtifact]:
    """The TensorRT-LLM checkpoint between source and engine, which stays as it is within the block."""
    source = recipe.source

    def make(out: Path) -> Mapping[str, object]:
        convert(
            source.folder,
            out,
            dtype=conversion.options.dtype,
            for_engine=conversion.for_engine,
            on_event=workplace.on_event,
        )
        workplace.sources.require_unchanged(plan.source)
        return {}

    with workplace.cache.entry(conversion.key, make, made_for=plan.label, on_event=workplace.on_event) as entry:
        yield CheckpointArtifact(entry.files, TrtllmConfig.read(entry.files), source.folder, plan.checkpoint_digest)


def _manifest(plan: VersionPlan, recipe: Recipe) -> Manifest:
    version = plan.version
    return Manifest(
        model=version.model_name,
        version=version.number,
        kind=version.engine.kind,
        checkpoint_digest=plan.checkpoint_digest,
        spec_digest=plan.spec_digest,
        settings=plan.settings,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tools=recipe.tools,
        release=recipe.release,
        gpu_architecture=recipe.gpu_architecture,
    )
