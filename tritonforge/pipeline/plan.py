"""What a build has to do: each wanted version against what the repository holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonforge.artifacts import digest_of
from tritonforge.errors import BuildError, RepositoryError, SpecError, did_you_mean
from tritonforge.pipeline.differences import differences
from tritonforge.pipeline.sources import source_digest
from tritonforge.pipeline.weights import weights_after, weights_in_force
from tritonforge.repository.layout import find_version
from tritonforge.spec.load import LoadedSpec
from tritonforge.spec.model import ModelSpec, ResolvedVersion
from tritonforge.spec.openvino import OpenVinoEngineSpec


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
    """

    version: ResolvedVersion
    source: Path
    checkpoint_digest: str
    settings: Mapping[str, object]
    spec_digest: str
    state: Literal["new", "unchanged", "changed"]
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What of the spec to build, and how.

    Args:
        model: Only this model; all when None.
        version: Only this version; all when None.
        replace: Rebuild versions in place that are published with another build.
        traffic: Give models that are published already the spec's traffic; else they keep the weights in force.
        server: gRPC address of a running server that takes the result; None publishes on disk only.
    """

    model: str | None = None
    version: int | None = None
    replace: bool = False
    traffic: bool = False
    server: str | None = None


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


def plan_build(loaded: LoadedSpec, options: BuildOptions) -> list[ModelPlan]:
    """Everything that a build is going to do, checked as far as it can be before any of it is done. Writes nothing.

    Raises:
        SpecError: The spec has no such model or version.
        BuildError: A version needs an engine that this release does not build, or a model would get no traffic.
        CheckpointError: A checkpoint cannot be read.
        RepositoryError: A version is published with another build, or what is published cannot be read.
    """
    wanted = wanted_models(loaded, options.model, options.version)
    plans = []
    for model in loaded.spec.models:
        if model.name in wanted:
            versions = tuple(plan_versions(loaded, model, wanted[model.name]))
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


def plan_versions(loaded: LoadedSpec, model: ModelSpec, numbers: Collection[int]) -> list[VersionPlan]:
    """Compare each version with the repository. Writes nothing.

    Raises:
        BuildError: A version needs an engine that this release does not build.
        CheckpointError: A checkpoint cannot be read.
        RepositoryError: A manifest in the repository cannot be read.
    """
    return [_plan(loaded, model.resolved(number)) for number in sorted(numbers)]


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


def _plan(loaded: LoadedSpec, version: ResolvedVersion) -> VersionPlan:
    if not isinstance(version.engine, OpenVinoEngineSpec):
        raise BuildError(
            f"{version.model_name} version {version.number}: engine kind {version.engine.kind!r} is not built by this "
            f"release; expected 'openvino'",
            hint="`tritonforge convert` writes the TensorRT-LLM checkpoint that trtllm-build takes",
        )
    source = loaded.resolve(version.checkpoint)
    digest = source_digest(source)
    parts = {"engine": version.engine, "limits": version.limits, "serving": version.serving}
    settings = {name: part.model_dump(mode="json") for name, part in parts.items()}
    spec_digest = digest_of(settings)
    published = find_version(loaded.repository, version.model_name, version.number)
    if published is None:
        return VersionPlan(version, source, digest, settings, spec_digest, "new")
    manifest = published.manifest
    if (manifest.checkpoint_digest, manifest.spec_digest) == (digest, spec_digest):
        return VersionPlan(version, source, digest, settings, spec_digest, "unchanged")
    checkpoint = ("its checkpoint is another one",) if manifest.checkpoint_digest != digest else ()
    changes = (*checkpoint, *differences(manifest.settings, settings))
    return VersionPlan(version, source, digest, settings, spec_digest, "changed", changes)
