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
from tritonforge.pipeline.kinds import KINDS
from tritonforge.pipeline.published import changes_since, kept_versions, refuse_folders_of_others
from tritonforge.pipeline.recipe import Ingredients, Recipe
from tritonforge.pipeline.weights import weights_after, weights_to_keep
from tritonforge.repository.traffic import published_versions
from tritonforge.spec.layout import GATEWAY
from tritonforge.spec.load import LoadedSpec
from tritonforge.spec.model import ModelSpec, ResolvedVersion

State = Literal["new", "unchanged", "changed"]


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """One version that the spec asks for, and its state in the repository.

    Args:
        version: What is asked for.
        source: Its checkpoint, a Hugging Face folder or a GGUF file.
        checkpoint_digest: Digest of that checkpoint.
        settings: Everything in the spec that goes into the version.
        spec_digest: Digest of `settings`.
        state: ``new`` is not published, ``unchanged`` is published as asked for, ``changed`` is published otherwise,
            or damaged since.
        differences: What is otherwise, one phrase each.
        recipe: How it is made; None when it is published already, and for a GGUF file that has yet to be imported.
    """

    version: ResolvedVersion
    source: Path
    checkpoint_digest: str
    settings: Mapping[str, object]
    spec_digest: str
    state: State
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
        RepositoryError: A version is published with another build, or is damaged; or a folder belongs to another model.
    """
    loaded = context.loaded
    wanted = wanted_models(loaded, options.model, options.version)
    models = [model for model in loaded.spec.models if model.name in wanted]
    versions = {model.name: tuple(plan_versions(context, model, wanted[model.name])) for model in models}
    if not options.replace:
        refuse_changed([version for planned in versions.values() for version in planned])
    return [_plan_model(loaded.repository, model, versions[model.name], options) for model in models]


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


def _plan_model(
    repository: Path, model: ModelSpec, versions: tuple[VersionPlan, ...], options: BuildOptions
) -> ModelPlan:
    """What is done about one model: its versions, and its traffic afterwards."""
    numbers = [plan.version.number for plan in versions]
    work = [plan.version.number for plan in versions if plan.state != "unchanged"]
    refuse_folders_of_others(repository, model, work)
    there: Collection[int] = published_versions(repository, model.name)
    if work:
        there = kept_versions(repository, model, work, replace=options.replace).versions
    in_force = weights_to_keep(repository, model.name, {*there, *numbers}, replace=options.replace)
    return ModelPlan(model, versions, weights_after(model, in_force, numbers, from_spec=options.traffic))


def _plan(context: BuildContext, version: ResolvedVersion) -> VersionPlan:
    source = context.loaded.resolve(version.checkpoint)
    digest = context.sources.digest(source)
    parts = {"engine": version.engine, "limits": version.limits, "serving": version.serving}
    layout: dict[str, object] = (
        {} if version.layout == GATEWAY else {"layout": version.layout}
    )  # the default is left out
    settings = {**{name: part.model_dump(mode="json") for name, part in parts.items()}, **layout}
    chosen = {name: part.model_dump(mode="json", exclude_defaults=True) for name, part in parts.items()}
    changes = changes_since(
        context.loaded.repository,
        version,
        checkpoint_digest=digest,
        settings=settings,
        chosen={**chosen, **layout},
    )
    state: State = "new" if changes is None else "changed" if changes else "unchanged"
    plan = VersionPlan(version, source, digest, settings, digest_of(settings), state, changes or ())
    if state == "unchanged":
        return plan
    opened = context.sources.look(source, as_it_is=is_as_it_is(version))
    return plan if opened is None else replace(plan, recipe=plan_recipe(context, version, opened, digest))
