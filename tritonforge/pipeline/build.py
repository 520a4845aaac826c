"""forge.yaml → published versions: compile what is new, render, publish in one transaction per model, load, verify."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonforge.client import Client
from tritonforge.errors import BuildError, RepositoryError
from tritonforge.events import OnEvent, ignore
from tritonforge.pipeline.compile import CompiledVersion, compile_version
from tritonforge.pipeline.live import LiveServer
from tritonforge.pipeline.plan import VersionPlan, plan_versions, refuse_changed, wanted_models
from tritonforge.pipeline.traffic import change_traffic
from tritonforge.places import forge_folder
from tritonforge.repository.layout import engine_model_name
from tritonforge.repository.lint import Finding, lint
from tritonforge.repository.publish import Transaction
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.serving import ServedVersion, read_served
from tritonforge.repository.traffic import read_routes
from tritonforge.spec.load import LoadedSpec
from tritonforge.spec.model import ModelSpec
from tritonforge.staging import scratch_folder, sweep

# Folders in the one beside the repository: for what is being compiled, and for imported GGUF files.
WORK, CHECKPOINTS = "work", "checkpoints"


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What of the spec to build, and how.

    Args:
        model: Only this model; all when None.
        version: Only this version; all when None.
        replace: Rebuild versions in place that are published with another build.
        server: gRPC address of a running server that takes the result; None publishes on disk only.
    """

    model: str | None = None
    version: int | None = None
    replace: bool = False
    server: str | None = None


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
        server: The server that serves the result now; None when none was told.
    """

    repository: Path
    versions: tuple[VersionResult, ...]
    traffic: Mapping[str, Mapping[int, float]]
    server: str | None


def build_spec(loaded: LoadedSpec, options: BuildOptions, *, on_event: OnEvent = ignore) -> BuildResult:
    """Build and publish what a spec asks for.

    Each model is published in one step: all of its new versions and the gateway, or nothing.

    Args:
        loaded: The spec.
        options: What of it, and how.
        on_event: Called with one line per step.

    Raises:
        SpecError: The spec has no such model or version.
        CheckpointError, BuildError: A version cannot be compiled; nothing of its model is published.
        RepositoryError: A version is published with another build, or publishing failed; nothing was changed.
    """
    wanted = wanted_models(loaded, options.model, options.version)
    models = [model for model in loaded.spec.models if model.name in wanted]
    plans = {model.name: plan_versions(loaded, model, wanted[model.name]) for model in models}
    if not options.replace:
        refuse_changed([plan for model_plans in plans.values() for plan in model_plans])
    for name in (WORK, CHECKPOINTS):
        sweep(forge_folder(loaded.repository) / name)
    results: list[VersionResult] = []
    for model in models:
        results += _build_model(loaded, model, plans[model.name], options, on_event)
    traffic = {model.name: read_routes(loaded.repository, model.name).weights for model in models}
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


def _build_model(
    loaded: LoadedSpec,
    model: ModelSpec,
    plans: Sequence[VersionPlan],
    options: BuildOptions,
    on_event: OnEvent,
) -> list[VersionResult]:
    work = [plan for plan in plans if plan.state != "unchanged"]
    compiled: list[CompiledVersion] = []
    if work:
        cache = forge_folder(loaded.repository) / CHECKPOINTS
        with scratch_folder(forge_folder(loaded.repository) / WORK, "build") as folder:
            for plan in work:
                on_event(f"{model.name} version {plan.version.number}: {plan.state}")
                compiled.append(compile_version(plan, folder, cache=cache, on_event=on_event))
            _publish(loaded, model, compiled, options, on_event)
    weights = _weights(model, read_served(loaded.repository / model.name))
    if weights != read_routes(loaded.repository, model.name).weights:
        on_event(f"{model.name}: traffic {_shown(weights)}")
        change_traffic(loaded.repository, model.name, weights, server=options.server)
    return [version_result(plan, compiled) for plan in plans]


def _publish(
    loaded: LoadedSpec,
    model: ModelSpec,
    compiled: Sequence[CompiledVersion],
    options: BuildOptions,
    on_event: OnEvent,
) -> None:
    """One transaction: the new engine models, then the gateway that knows them."""
    mount = loaded.spec.mount or str(loaded.repository)
    numbers = [version.version.number for version in compiled]
    with Transaction(
        loaded.repository,
        purpose=f"build {model.name} {numbers}",
        on_wait=lambda holder: on_event(f"waiting for {holder or 'another writer'}"),
    ) as transaction:
        engines = [
            render_engine(version.version, version.engine, transaction.staging, mount=mount, manifest=version.manifest)
            for version in compiled
        ]
        served = _served(loaded.repository / model.name, compiled)
        weights = _first_weights(loaded.repository, model, served, numbers)
        gateway = render_gateway(model, served, transaction.staging, weights=weights)
        _refuse_findings(lint(transaction.staging, beside=loaded.repository))
        on_event(f"{model.name}: publishing {', '.join(engine.name for engine in engines)}")
        if options.server is None:
            transaction.publish([*engines, gateway])
            return
        with Client(options.server) as client:
            live = LiveServer(client, gateway=model.name, engines=[engine.name for engine in engines])

            def apply() -> None:
                live.take()
                for number in numbers:
                    live.run_tests(model.tests, number)

            transaction.publish([*engines, gateway], apply=apply, undo=live.take_back)


def _refuse_findings(findings: Sequence[Finding]) -> None:
    """What lint calls an error would be refused by the server: it is found before anything is published."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        lines = "".join(f"\n  {found.code}: {found.path}:{found.line or 1}: {found.message}" for found in errors)
        raise RepositoryError(f"what was rendered does not pass lint:{lines}", hint=errors[0].fix)


def _served(gateway: Path, compiled: Sequence[CompiledVersion]) -> list[ServedVersion]:
    """Every version that the gateway is to know: those of before, and the new ones."""
    served = {version.number: version for version in read_served(gateway)}
    for new in compiled:
        served[new.version.number] = ServedVersion.of(new.version, new.engine, new.tokenizer)
    return [served[number] for number in sorted(served)]


def _first_weights(
    repository: Path, model: ModelSpec, served: Sequence[ServedVersion], new: Collection[int]
) -> Mapping[int, float]:
    """Weights while new versions are proved: they get traffic only when nothing else could."""
    if all(version.number in new for version in served):
        return _weights(model, served)
    current = read_routes(repository, model.name).weights
    return {version.number: current.get(version.number, 0.0) for version in served}


def _weights(model: ModelSpec, served: Sequence[ServedVersion]) -> dict[int, float]:
    """The spec's traffic over the versions that are there; those that the spec does not name get nothing."""
    weights = {version.number: float(model.traffic.get(version.number, 0.0)) for version in served}
    if not sum(weights.values()) > 0:
        raise BuildError(
            f"{model.name}: the spec's traffic ({_shown(model.traffic)}) gives nothing to the published versions "
            f"{list(weights)}",
            hint="build all versions, or give one of them a weight",
        )
    return weights


def _shown(weights: Mapping[int, float]) -> str:
    return ", ".join(f"{number}: {weight:g}" for number, weight in sorted(weights.items()))
