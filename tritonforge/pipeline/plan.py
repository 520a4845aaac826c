"""What a build has to do: each wanted version against what the repository holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tritonforge.artifacts import digest_of
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.errors import BuildError, CheckpointError, RepositoryError, SpecError, ToolMissing, did_you_mean
from tritonforge.pipeline.as_it_is import is_as_it_is
from tritonforge.pipeline.context import BuildContext
from tritonforge.pipeline.differences import differences
from tritonforge.pipeline.kinds import KINDS
from tritonforge.pipeline.recipe import Ingredients, Recipe
from tritonforge.pipeline.weights import weights_after, weights_in_force
from tritonforge.repository.layout import find_version
from tritonforge.repository.manifest import Manifest
from tritonforge.spec.layout import GATEWAY
from tritonforge.spec.load import LoadedSpec
from tritonforge.spec.model import ModelSpec, ResolvedVersion


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """One version that the spec asks for, and its state in the repository.

    Args:
        version: What is asked for.
        source: Its checkpoint, a Hugging Face folder or a GGUF file.
        checkpoint_digest: Digest of that checkpoint.
        settings: Everything in the spec that goes into the version.
        spec_digest: Digest of `settings`.
        state: ``new`` is not published, ``unchanged`` is published as asked for, ``changed`` is published otherwise.
        differences: What is otherwise, one phrase each.
        recipe: How it is made; None when it is published already, and for a GGUF file that has yet to be imported.
    """

    version: ResolvedVersion
    source: Path
    checkpoint_digest: str
    settings: Mapping[str, object]
    spec_digest: str
    state: Literal["new", "unchanged", "changed"]
    differences: tuple[str, ...] = ()
    recipe: Recipe | None = None

    @property
    def label(self) -> str:
        """How messages name it."""
        return label_of(self.version)


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What of the spec to build, and how.

    Args:
        model: Only this model; all when None.
        version: Only this version; all when None.
        replace: Rebuild versions in place that are published with another build.
        traffic: Give models that are published already the spec's traffic; else they keep the weights in force.
        server: gRPC address of a running server that takes the result; None publishes on disk only.
        cache: Folder of the build cache; None takes the one beside the repository.
        use_cache: Whether to take from the build cache and to put into it.
        pull: Whether to download the images that engines are built in when they are not there.
    """

    model: str | None = None
    version: int | None = None
    replace: bool = False
    traffic: bool = False
    server: str | None = None
    cache: Path | None = None
    use_cache: bool = True
    pull: bool = False


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """One model that a build is about.

    Args:
        model: What is asked for.
        versions: Its versions to build, lowest first.
        weights: Weight by version when the build is done.
    """

    model: ModelSpec
    versions: tuple[VersionPlan, ...]
    weights: Mapping[int, float]

    @property
    def work(self) -> tuple[VersionPlan, ...]:
        """The versions that have to be compiled and published."""
        return tuple(plan for plan in self.versions if plan.state != "unchanged")


def plan_build(context: BuildContext, options: BuildOptions) -> list[ModelPlan]:
    """Everything that a build is going to do, checked as far as it can be before any of it is done. Writes nothing.

    Args:
        context: The build.
        options: What of the specification to build, and how.

    Raises:
        SpecError: The spec has no such model or version.
        BuildError: A version cannot be built as the spec asks for, or a model would get no traffic.
        CheckpointError: A checkpoint cannot be read, or not be converted as the spec asks for.
        RepositoryError: A version is published with another build, or what is published cannot be read.
    """
    loaded = context.loaded
    wanted = wanted_models(loaded, options.model, options.version)
    plans = []
    for model in loaded.spec.models:
        if model.name in wanted:
            versions = tuple(plan_versions(context, model, wanted[model.name]))
            numbers = [plan.version.number for plan in versions]
            in_force = weights_in_force(loaded.repository, model.name)
            weights = weights_after(model, in_force, numbers, from_spec=options.traffic)
            plans.append(ModelPlan(model, versions, weights))
    if not options.replace:
        refuse_changed([version for plan in plans for version in plan.versions])
    return plans


def wanted_models(loaded: LoadedSpec, model: str | None, version: int | None) -> Mapping[str, tuple[int, ...]]:
    """Version numbers to build by model name, narrowed to one model or version when asked.

    Raises:
        SpecError: The spec has no such model or version.
    """
    models = {spec.name: tuple(sorted(spec.versions)) for spec in loaded.spec.models}
    if model is not None:
        if model not in models:
            hint = did_you_mean(model, list(models)) or f"its models: {', '.join(models)}"
            raise SpecError(f"{loaded.path}: there is no model {model!r}", hint=hint)
        models = {model: models[model]}
    if version is not None:
        models = {name: (version,) for name, numbers in models.items() if version in numbers}
        if not models:
            raise SpecError(f"{loaded.path}: there is no version {version}", hint="see `versions:` in the file")
    return models


def plan_versions(context: BuildContext, model: ModelSpec, numbers: Collection[int]) -> list[VersionPlan]:
    """Compare each version with the repository, and decide how what is not there is made. Writes nothing.

    Raises:
        BuildError, SpecError: A version cannot be built as the spec asks for.
        CheckpointError: A checkpoint cannot be read, or not be converted as the spec asks for.
        RepositoryError: A manifest in the repository cannot be read.
    """
    return [_plan(context, model.resolved(number)) for number in sorted(numbers)]


def label_of(version: ResolvedVersion) -> str:
    """How messages name a version."""
    return f"{version.model_name} version {version.number}"


def plan_recipe(context: BuildContext, version: ResolvedVersion, source: SourceCheckpoint, digest: str) -> Recipe:
    """How a version is made from an opened checkpoint. Writes nothing.

    Raises:
        BuildError, SpecError: It cannot be built as the spec asks for.
        CheckpointError: The checkpoint cannot be converted as the spec asks for.
    """
    ingredients = Ingredients(version, source, digest, context.loaded.resolve, context.machine)
    try:
        return KINDS[version.engine.kind].plan(ingredients)
    except ToolMissing:
        raise  # whatever is written
    except (BuildError, CheckpointError, SpecError) as error:
        error.place(context.loaded.place_of_engine(version.model_name, version.number))
        raise


def refuse_changed(plans: Collection[VersionPlan]) -> None:
    """Published versions do not change under their number, unless the user says so.

    Raises:
        RepositoryError: A version is published with another build.
    """
    for plan in plans:
        if plan.state == "changed":
            version = plan.version
            raise RepositoryError(
                f"{version.model_name} version {version.number} is published and is not what the spec asks for now: "
                f"{'; '.join(plan.differences)}",
                hint="put the change under a version number of its own (`versions:` has limits and serving, too), or "
                "pass --replace to rebuild the published one in place",
            )


def _plan(context: BuildContext, version: ResolvedVersion) -> VersionPlan:
    source = context.loaded.resolve(version.checkpoint)
    digest = context.sources.digest(source)
    parts = {"engine": version.engine, "limits": version.limits, "serving": version.serving}
    layout: dict[str, object] = (
        {} if version.layout == GATEWAY else {"layout": version.layout}
    )  # the default is left out
    settings = {**{name: part.model_dump(mode="json") for name, part in parts.items()}, **layout}
    plan = VersionPlan(version, source, digest, settings, digest_of(settings), "new")
    published = find_version(context.loaded.repository, version.model_name, version.number)
    if published is not None:
        chosen = {name: part.model_dump(mode="json", exclude_defaults=True) for name, part in parts.items()}
        plan = _compared(plan, published.manifest, {**chosen, **layout})
    if plan.state == "unchanged":
        return plan
    opened = context.sources.look(source, as_it_is=is_as_it_is(version))
    return plan if opened is None else replace(plan, recipe=plan_recipe(context, version, opened, digest))


def _compared(plan: VersionPlan, manifest: Manifest, chosen: Mapping[str, object]) -> VersionPlan:
    """The plan of a version that is published. `chosen` are its settings that are not at their default."""
    is_same_source = manifest.checkpoint_digest == plan.checkpoint_digest
    changes = differences(manifest.settings, plan.settings, chosen=chosen)
    if is_same_source and not changes:
        return replace(plan, state="unchanged")
    checkpoint = () if is_same_source else ("its checkpoint is another one",)
    return replace(plan, state="changed", differences=(*checkpoint, *changes))
