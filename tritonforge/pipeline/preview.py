"""What a build would do, without doing any of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonforge.pipeline.build import VersionResult, cache_folder, version_result
from tritonforge.pipeline.cache import BuildCache
from tritonforge.pipeline.context import BuildContext
from tritonforge.pipeline.explain import CacheLook, explain
from tritonforge.pipeline.kinds import KINDS
from tritonforge.pipeline.load import refuse_unfit
from tritonforge.pipeline.plan import BuildOptions, VersionPlan, plan_build
from tritonforge.pipeline.together import planned_apart
from tritonforge.repository.ensemble import EnsembleNames
from tritonforge.repository.layout import CONFIG_NAME, engine_model_name, serving_folder
from tritonforge.spec.layout import GATEWAY
from tritonforge.spec.load import LoadedSpec


@dataclass(frozen=True, slots=True)
class PlannedCommand:
    """A program that a build would run.

    Args:
        version: The version that it is for, as messages name it.
        argv: Program and arguments; paths as the program sees them.
        cwd: Working directory as the program sees it.
        image: Container image; None runs it on this machine.
        mounts: Host path by container path.
        read_only: Those of the container paths that it may only read.
        gpus: Numbers of the GPUs that it sees, or ``all``.
        env: Variables that are set for it.
        user: ``uid:gid`` that the container runs as; empty when the program runs on this machine itself.
        shm_bytes: Shared memory of the container; 0 when the program runs on this machine itself.
    """

    version: str
    argv: tuple[str, ...]
    cwd: str
    image: str | None
    mounts: Mapping[str, str]
    read_only: tuple[str, ...]
    gpus: tuple[int, ...] | str | None
    env: Mapping[str, str]
    user: str
    shm_bytes: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What a build would do.

    Args:
        repository: The model repository.
        versions: One entry per version that the spec asks for.
        commands: Programs that would be run, with paths in the build cache; none for what is there already, and for
            what is made in this process. While they run, the folder that they write to has a temporary name.
        files: Files and folders (with a closing slash) that would be written, relative to the repository.
        traffic: Weights by version number, by model, as they would be afterwards.
        cache: What the build cache has of what the versions are made from.
        notes: What a user should know about what would be built, one sentence each.
    """

    repository: Path
    versions: tuple[VersionResult, ...]
    commands: tuple[PlannedCommand, ...]
    files: tuple[str, ...]
    traffic: Mapping[str, Mapping[int, float]]
    cache: tuple[CacheLook, ...]
    notes: tuple[str, ...]


def preview_spec(loaded: LoadedSpec, options: BuildOptions) -> Preview:
    """Say what `build_spec` would do. Writes nothing, and raises what the build would raise before its first step."""
    models = plan_build(BuildContext.of(loaded), options)
    unknown = refuse_unfit(loaded, models, options)
    apart = [note for model in models if (note := planned_apart(loaded.repository, model)) is not None]
    plans = [version for model in models for version in model.versions]
    cache = BuildCache(cache_folder(loaded, options))
    looks = tuple(look for plan in plans for look in explain(plan, cache)) if options.use_cache else ()
    there = {look.key for look in looks if look.hit}
    return Preview(
        repository=loaded.repository,
        versions=tuple(version_result(plan) for plan in plans),
        commands=tuple(command for plan in plans for command in _commands(plan, cache, there)),
        files=tuple(_files(plans)),
        traffic={plan.model.name: plan.weights for plan in models},
        cache=looks,
        notes=(*(note for plan in plans for note in _notes(plan)), *unknown, *apart),
    )


def _commands(plan: VersionPlan, cache: BuildCache, there: Collection[str]) -> Iterator[PlannedCommand]:
    recipe, commands = plan.recipe, KINDS[plan.version.engine.kind].commands
    if recipe is None or commands is None or recipe.engine_key is None or recipe.conversion is None:
        return
    if recipe.engine_key.digest in there:
        return
    checkpoint, out = cache.files_of(recipe.conversion.key), cache.files_of(recipe.engine_key)
    for command in commands(recipe, checkpoint=checkpoint, out=out):
        yield PlannedCommand(
            version=plan.label,
            argv=command.argv,
            cwd=command.cwd,
            image=command.image,
            mounts={mount.container: str(mount.host) for mount in command.mounts},
            read_only=tuple(mount.container for mount in command.mounts if mount.read_only),
            gpus=command.gpus,
            env=command.env,
            user=command.user,
            shm_bytes=command.shm_bytes,
        )


def _notes(plan: VersionPlan) -> Iterator[str]:
    if plan.recipe is not None:
        converting = () if plan.recipe.conversion is None else plan.recipe.conversion.notes
        yield from (f"{plan.label}: {note}" for note in (*converting, *plan.recipe.notes))


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
        if version.layout != GATEWAY:
            parts = EnsembleNames(version.model_name, version.number).parts
            files |= dict.fromkeys(f"{part}/{name}" for part in parts for name in (CONFIG_NAME, f"{version.number}/"))
    return sorted(files)
