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
from tritonforge.pipeline.as_it_is import is_as_it_is
from tritonforge.pipeline.cache import BuildCache
from tritonforge.pipeline.cache_key import CacheKey
from tritonforge.pipeline.context import BuildContext
from tritonforge.pipeline.kinds import KINDS, Build
from tritonforge.pipeline.plan import VersionPlan, plan_recipe
from tritonforge.pipeline.recipe import Recipe
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
        was_cached: Whether the engine was in the build cache; None for one that is never kept there.
    """

    version: ResolvedVersion
    engine: EngineArtifact
    tokenizer: TokenizerArtifact
    manifest: Manifest
    took_s: float
    was_cached: bool | None = None


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where versions are compiled.

    Args:
        context: The build.
        folder: Takes the engines; on the repository's file system.
        cache: The build cache.
        on_event: Called with one line per step.
    """

    context: BuildContext
    folder: Path
    cache: BuildCache
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
    context = workplace.context
    as_it_is = is_as_it_is(plan.version)
    source = context.sources.open(plan.source, as_it_is=as_it_is, on_event=workplace.on_event)
    recipe = plan.recipe or plan_recipe(context, plan.version, source, plan.checkpoint_digest)
    tokenizer = context.sources.tokenizer(source)
    for note in recipe.notes:
        workplace.on_event(f"{plan.label}: note: {note}")
    engine, was_cached = _engine(plan, recipe, tokenizer, workplace)
    return CompiledVersion(
        version=recipe.version,
        engine=engine,
        tokenizer=tokenizer,
        manifest=_manifest(plan, recipe),
        took_s=time.monotonic() - started,
        was_cached=was_cached,
    )


def _engine(
    plan: VersionPlan, recipe: Recipe, tokenizer: TokenizerArtifact, workplace: Workplace
) -> tuple[EngineArtifact, bool | None]:
    """The engine in the workplace, and whether the cache had it; None for one that is never kept there."""
    kind, key = KINDS[recipe.version.engine.kind], recipe.engine_key
    out = workplace.folder / f"{plan.version.model_name}-v{plan.version.number}-engine"
    if kind.gather is not None:
        return kind.gather(recipe, tokenizer, out, on_event=workplace.on_event), None
    if kind.build is None or key is None:
        raise UsageBug(f"{plan.label}: the recipe does not say how it is compiled")
    return _compiled(plan, recipe, key, kind.build, out, workplace)


def _compiled(
    plan: VersionPlan, recipe: Recipe, key: CacheKey, build: Build, out: Path, workplace: Workplace
) -> tuple[EngineArtifact, bool]:
    """The engine as links to the files of the cache where the two are on one file system, and whether it was there."""
    log = workplace.context.logs / f"{out.name}.log"
    made = False

    def make(folder: Path) -> Mapping[str, object]:
        nonlocal made
        made = True
        with _checkpoint(plan, recipe, workplace) as checkpoint:
            engine = build(recipe, checkpoint, folder, log=log, on_event=workplace.on_event)
        return {"vocab_size": engine.vocab_size, "weights_bytes": engine.weights_bytes}

    with workplace.cache.entry(key, make, made_for=plan.label, on_event=workplace.on_event) as entry:
        for file in entry.contents:
            place(entry.files / file, out / file)
    artifact = EngineArtifact(
        path=out,
        kind=recipe.version.engine.kind,
        files=tuple(sorted(entry.contents)),
        vocab_size=int(str(entry.about["vocab_size"])),
        weights_bytes=int(str(entry.about["weights_bytes"])),
    )
    return artifact, not made


@contextmanager
def _checkpoint(plan: VersionPlan, recipe: Recipe, workplace: Workplace) -> Iterator[CheckpointArtifact]:
    """The TensorRT-LLM checkpoint between source and engine, which stays as it is within the block."""
    source, conversion = recipe.source, recipe.conversion
    if conversion is None:
        raise UsageBug(f"{plan.label}: the recipe does not say how it is converted")

    def make(out: Path) -> Mapping[str, object]:
        def tell(line: str) -> None:
            workplace.on_event(line.replace(str(out), f"the {conversion.key.noun}"))  # the place has a passing name

        convert(
            source.folder,
            out,
            conversion.options,
            for_engine=conversion.for_engine,
            on_event=tell,
            on_progress=workplace.context.on_progress,
        )
        workplace.context.sources.require_unchanged(plan.source)
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
