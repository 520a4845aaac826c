"""forge.yaml → published versions: compile what is new, render, publish in one transaction per model, load, verify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonforge.events import OnEvent, ignore
from tritonforge.pipeline.compile import CompiledVersion, compile_version
from tritonforge.pipeline.plan import BuildOptions, ModelPlan, VersionPlan, plan_build
from tritonforge.pipeline.publish import publish_versions
from tritonforge.pipeline.traffic import change_traffic
from tritonforge.pipeline.weights import difference, shown, weights_in_force
from tritonforge.places import forge_folder
from tritonforge.repository.files import naming
from tritonforge.repository.layout import engine_model_name
from tritonforge.repository.traffic import published_versions
from tritonforge.spec.load import LoadedSpec
from tritonforge.spec.model import ModelSpec
from tritonforge.staging import scratch_folder, sweep

# Folders in the one beside the repository: for what is being compiled, and for imported GGUF files.
WORK, CHECKPOINTS = "work", "checkpoints"


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
    """

    model: str
    version: int
    engine_model: str
    state: str
    precision: str
    weights_bytes: int | None
    took_s: float | None


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build did.

    Args:
        repository: The model repository.
        versions: One entry per version that the spec asks for.
        traffic: Weights by version number, by model.
        server: The server that serves the result now; None when no server took it.
    """

    repository: Path
    versions: tuple[VersionResult, ...]
    traffic: Mapping[str, Mapping[int, float]]
    server: str | None


def build_spec(loaded: LoadedSpec, options: BuildOptions, *, on_event: OnEvent = ignore) -> BuildResult:
    """Build and publish what a spec asks for.

    Each model is published in one step: all of its new versions and the gateway, or nothing. The spec's traffic is what
    a model starts with; one that is published keeps the weights in force, unless `options.traffic` says otherwise.

    Args:
        loaded: The spec.
        options: What of it, and how.
        on_event: Called with one line per step.

    Raises:
        SpecError: The spec has no such model or version.
        CheckpointError, BuildError: A version cannot be compiled, or the spec's traffic leads nowhere; nothing of its
            model is published.
        RepositoryError: A version is published with another build, the folder beside the repository cannot be written,
            or publishing failed; nothing was changed.
    """
    plans = plan_build(loaded, options)
    for name in (WORK, CHECKPOINTS):
        sweep(forge_folder(loaded.repository) / name)
    results = [result for plan in plans for result in _build_model(loaded, plan, options, on_event)]
    traffic = {plan.model.name: weights_in_force(loaded.repository, plan.model.name) or {} for plan in plans}
    return BuildResult(loaded.repository, tuple(results), traffic, options.server)


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
    )


def _build_model(loaded: LoadedSpec, plan: ModelPlan, options: BuildOptions, on_event: OnEvent) -> list[VersionResult]:
    model = plan.model
    compiled: list[CompiledVersion] = []
    if plan.work:
        cache = forge_folder(loaded.repository) / CHECKPOINTS
        work = forge_folder(loaded.repository) / WORK
        with naming(work), scratch_folder(work, "build") as folder:
            for version in plan.work:
                on_event(f"{model.name} version {version.version.number}: {version.state}")
                compiled.append(compile_version(version, folder, cache=cache, on_event=on_event))
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
            change_traffic(repository, model.name, plan.weights, server=options.server)
    elif line := difference(model, in_force):
        on_event(line)


def _mention_left_over(repository: Path, model: ModelSpec, on_event: OnEvent) -> None:
    """Versions that the spec does not name any more are not taken away behind anybody's back."""
    for number in published_versions(repository, model.name):
        if number not in model.versions:
            on_event(f"{model.name} version {number} is not in the spec; it stays published, with the traffic it has")
