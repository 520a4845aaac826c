"""What a build would do, without doing any of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tritonforge.pipeline.build import VersionResult, cache_folder, version_result
from tritonforge.pipeline.cache import BuildCache
from tritonforge.pipeline.context import BuildContext
from tritonforge.pipeline.explain import CacheLook, explain
from tritonforge.pipeline.plan import BuildOptions, VersionPlan, plan_build
from tritonforge.repository.layout import CONFIG_NAME, engine_model_name, serving_folder
from tritonforge.spec.load import LoadedSpec


@dataclass(frozen=True, slots=True)
class PlannedCommand:
    """A program that a build would run.

    Args:
        argv: Program and arguments.
        cwd: Working directory.
        image: Container image; None runs it on this machine.
        mounts: Host path by container path.
    """

    argv: tuple[str, ...]
    cwd: Path
    image: str | None = None
    mounts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a build would do.

    Args:
        repository: The model repository.
        versions: One entry per version that the spec asks for.
        commands: Programs that would be run. The embedded engine is compiled in this process, with none.
        files: Files and folders (with a closing slash) that would be written, relative to the repository.
        traffic: Weights by version number, by model, as they would be afterwards.
        cache: What the build cache has of what the versions are made from.
    """

    repository: Path
    versions: tuple[VersionResult, ...]
    commands: tuple[PlannedCommand, ...]
    files: tuple[str, ...]
    traffic: Mapping[str, Mapping[int, float]]
    cache: tuple[CacheLook, ...]


def preview_spec(loaded: LoadedSpec, options: BuildOptions) -> Preview:
    """Say what `build_spec` would do. Writes nothing, and raises what the build would raise before its first step."""
    models = plan_build(BuildContext.of(loaded), options)
    plans = [version for model in models for version in model.versions]
    versions = tuple(version_result(plan) for plan in plans)
    cache = BuildCache(cache_folder(loaded, options)) if options.use_cache else None
    looks = () if cache is None else tuple(look for plan in plans for look in explain(plan, cache))
    traffic = {plan.model.name: plan.weights for plan in models}
    return Preview(loaded.repository, versions, commands=(), files=tuple(_files(plans)), traffic=traffic, cache=looks)


def _files(plans: Sequence[VersionPlan]) -> list[str]:
    files: dict[str, None] = {}  # in order, each once
    for plan in plans:
        if plan.state == "unchanged":
            continue
        version = plan.version
        engine = engine_model_name(version.model_name, version.number)
        gateway = Path(version.model_name)
        files |= dict.fromkeys(
            [
                f"{engine}/{CONFIG_NAME}",
                f"{engine}/{version.number}/",
                f"{gateway}/{CONFIG_NAME}",
                f"{serving_folder(gateway, version.number)}/",
            ]
        )
    return sorted(files)
