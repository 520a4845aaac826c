"""forge.yaml → published versions: compile what is new, render, publish in one transaction per model, load, verify."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonforge.errors import BuildError
from tritonforge.events import OnEvent, OnProgress, ignore, ignore_progress
from tritonforge.launch.owner import end_orphans
from tritonforge.pipeline.cache import BuildCache, CacheSize
from tritonforge.pipeline.compile import CompiledVersion, Workplace, compile_version
from tritonforge.pipeline.context import CACHE, BuildContext
from tritonforge.pipeline.explain import explain
from tritonforge.pipeline.kinds import KINDS
from tritonforge.pipeline.load import refuse_unfit
from tritonforge.pipeline.plan import BuildOptions, ModelPlan, VersionPlan, plan_build
from tritonforge.pipeline.publish import publish_versions
from tritonforge.pipeline.start import how_to_serve
from tritonforge.pipeline.together import planned_apart
from tritonforge.pipeline.traffic import change_traffic
from tritonforge.pipeline.weights import difference, shown, weights_in_force
from tritonforge.places import forge_folder
from tritonforge.repository.files import naming
from tritonforge.repository.layout import engine_model_name
from tritonforge.repository.publish import recover
from tritonforge.repository.traffic import published_versions
from tritonforge.spec.load import LoadedSpec
from tritonforge.spec.model import ModelSpec
from tritonforge.staging import scratch_folder, sweep


@dataclass(frozen=True, slots=True)
class VersionResult:
    """What became of one version.

    Args:
        model: Public name of the model.
        version: Version number.
        engine_model: Its Triton model.
        state: ``new``, ``changed`` (rebuilt in place) or ``unchanged`` (was there already).
        precision: Precision of its weights.
        weights_bytes: Size of the weight file; None when unchanged.
        took_s: Seconds from checkpoint to engine; None when unchanged.
        cache: ``hit`` when the engine came out of the build cache, ``miss`` when it was made; None when unchanged, and
            in a preview.
    """

    model: str
    version: int
    engine_model: str
    state: str
    precision: str
    weights_bytes: int | None
    took_s: float | None
    cache: str | None = None


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build did.

    Args:
        repository: The model repository.
        versions: One entry per version that the spec asks for.
        traffic: Weights by version number, by model.
        server: The server that serves the result now; None when no server took it.
        cache: How much the build cache holds afterwards; None when it was not used.
        start: Commands that start servers for what is published, when no server took it: one for each that is needed.
    """

    repository: Path
    versions: tuple[VersionResult, ...]
    traffic: Mapping[str, Mapping[int, float]]
    server: str | None
    cache: CacheSize | None = None
    start: tuple[str, ...] = ()


def build_spec(
    loaded: LoadedSpec,
    options: BuildOptions,
    *,
    on_event: OnEvent = ignore,
    on_progress: OnProgress = ignore_progress,
) -> BuildResult:
    """Build and publish what a spec asks for.

    Each model is published in one step: all of its new versions and the gateway, or nothing. The spec's traffic is what
    a model starts with; one that is published keeps the weights in force, unless `options.traffic` says otherwise.

    Args:
        loaded: The spec.
        options: What of it, and how.
        on_event: Called with one line per step.
        on_progress: Called with the bytes that a conversion has made so far and in all.

    Raises:
        SpecError: The spec has no such model or version.
        CheckpointError, BuildError: A version cannot be compiled, or the spec's traffic leads nowhere; nothing of its
            model is published.
        EngineMismatch: The server or its GPU could not run a version.
        RepositoryError: A version is published with another build, the folder beside the repository cannot be written,
            or publishing failed; nothing was changed.
    """
    recover(loaded.repository)  # half of a change that was interrupted is not what is published
    context = BuildContext.of(loaded, on_progress=on_progress)
    plans = plan_build(context, options)
    refuse_unfit(loaded, plans, options)
    for plan in plans:
        if plan.work and (apart := planned_apart(loaded.repository, plan)):
            on_event(f"warning: {apart}")
    cache = BuildCache(cache_folder(loaded, options))
    if ended := end_orphans():  # before the folders that they write to are removed
        on_event(f"ended what a killed build has left running (process ids: {', '.join(map(str, ended))})")
    for folder in (context.work, context.imports):
        sweep(folder)
    cache.sweep()
    _prepare(plans, options, cache, on_event)
    results = [result for plan in plans for result in _build_model(context, plan, options, cache, on_event)]
    traffic = {plan.model.name: weights_in_force(loaded.repository, plan.model.name) or {} for plan in plans}
    size = cache.size() if options.use_cache else None
    start = how_to_serve(loaded.repository) if options.server is None else ()
    return BuildResult(loaded.repository, tuple(results), traffic, options.server, size, start)


def cache_folder(loaded: LoadedSpec, options: BuildOptions) -> Path:
    """Where the build cache is: where the options say, else beside the repository.

    There it is on one file system with the repository, so that the two can share files, and it goes away with it.

    Raises:
        BuildError: It is in the repository, where folders are models and a publish replaces them.
    """
    if options.cache is None:
        return forge_folder(loaded.repository) / CACHE
    if Path(os.path.realpath(options.cache)).is_relative_to(os.path.realpath(loaded.repository)):  # loops do not matter
        raise BuildError(
            f"{options.cache}: lies in the model repository {loaded.repository}, where every folder is a model",
            hint="put the build cache (--cache-folder, TRITONFORGE_CACHE) beside the repository, or anywhere else",
        )
    return options.cache


def _prepare(plans: Sequence[ModelPlan], options: BuildOptions, cache: BuildCache, on_event: OnEvent) -> None:
    """See that what compiles is there, for every version that the cache does not have, before the first is begun."""
    for version in (version for plan in plans for version in plan.work):
        prepare = KINDS[version.version.engine.kind].prepare
        looks = explain(version, cache) if options.use_cache else ()
        if prepare is not None and not (looks and looks[0].hit):
            prepare(version.version, pull=options.pull, on_event=on_event)


def version_result(plan: VersionPlan, compiled: Sequence[CompiledVersion] = ()) -> VersionResult:
    """The report on one version, from its plan and from what was compiled."""
    version = plan.version
    made = next((item for item in compiled if item.version.number == version.number), None)
    return VersionResult(
        model=version.model_name,
        version=version.number,
        engine_model=engine_model_name(version.model_name, version.number),
        state=plan.state,
        precision=version.engine.precision,
        weights_bytes=None if made is None else made.engine.weights_bytes,
        took_s=None if made is None else round(made.took_s, 2),
        cache=None if made is None or made.was_cached is None else "hit" if made.was_cached else "miss",
    )


def _build_model(
    context: BuildContext, plan: ModelPlan, options: BuildOptions, cache: BuildCache, on_event: OnEvent
) -> list[VersionResult]:
    loaded, model = context.loaded, plan.model
    compiled: list[CompiledVersion] = []
    if plan.work:
        with naming(context.work), scratch_folder(context.work, "build") as folder:
            # Without the cache, what versions share is still made once.
            used = cache if options.use_cache else BuildCache(folder / CACHE)
            workplace = Workplace(context, folder, used, on_event)
            for version in plan.work:
                on_event(f"{version.label}: {version.state}")
                compiled.append(compile_version(version, workplace))
            publish_versions(loaded, model, compiled, options, on_event=on_event)
    _mention_left_over(loaded.repository, model, on_event)
    _settle_traffic(loaded.repository, plan, options, on_event)
    return [version_result(version, compiled) for version in plan.versions]


def _settle_traffic(repository: Path, plan: ModelPlan, options: BuildOptions, on_event: OnEvent) -> None:
    """The spec's weights when they were asked for; else a word on how they differ from those in force."""
    model = plan.model
    in_force = weights_in_force(repository, model.name) or {}
    if options.traffic:
        if in_force != plan.weights:
            on_event(f"{model.name}: traffic {shown(plan.weights)}")
            change_traffic(repository, model.name, plan.weights, server=options.server, on_event=on_event)
    elif line := difference(model, in_force):
        on_event(line)


def _mention_left_over(repository: Path, model: ModelSpec, on_event: OnEvent) -> None:
    """Versions that the spec does not name any more are not taken away behind anybody's back."""
    for number in published_versions(repository, model.name):
        if number not in model.versions:
            on_event(f"{model.name} version {number} is not in the spec; it stays published, with the traffic it has")
