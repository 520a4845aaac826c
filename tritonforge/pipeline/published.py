"""What a version that is published already is, against what is asked for and against what it was."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonforge.errors import RepositoryError
from tritonforge.pipeline.damage import damage_of
from tritonforge.pipeline.differences import differences
from tritonforge.repository.layout import find_version, owner_of, served_versions
from tritonforge.repository.serving import ServedVersion, read_served_version
from tritonforge.spec.layout import folder_names
from tritonforge.spec.model import ModelSpec, ResolvedVersion


@dataclass(frozen=True, slots=True)
class Kept:
    """The versions that stay in the model that clients call while others are published.

    Args:
        versions: Those that it keeps, by number.
        dropped: Numbers of those that it cannot keep, for nobody can read what it knew of them.
    """

    versions: Mapping[int, ServedVersion]
    dropped: tuple[int, ...] = ()


def changes_since(
    repository: Path,
    version: ResolvedVersion,
    *,
    checkpoint_digest: str,
    settings: Mapping[str, object],
    chosen: Mapping[str, object],
) -> tuple[str, ...] | None:
    """How a published version differs from what is asked for and from what it was, one phrase each.

    Args:
        repository: The model repository.
        version: What is asked for.
        checkpoint_digest: Digest of its checkpoint.
        settings: Everything in the spec that goes into it.
        chosen: Those of the settings that are not at their default.

    Returns:
        None when it is not published.
    """
    try:
        published = find_version(repository, version.model_name, version.number)
    except RepositoryError as error:
        return (f"its manifest cannot be read ({error.message})",)
    if published is None:
        return None
    manifest = published.manifest
    checkpoint = () if manifest.checkpoint_digest == checkpoint_digest else ("its checkpoint is another one",)
    changes = differences(manifest.settings, settings, chosen=chosen)
    return (*checkpoint, *changes, *damage_of(repository, published))


def refuse_folders_of_others(repository: Path, model: ModelSpec, numbers: Collection[int]) -> None:
    """A model may be called as a part of another one is: `llama_engine_v1` beside `llama`.

    Args:
        repository: The model repository.
        model: The model.
        numbers: Those of its versions that are going to be published.

    Raises:
        RepositoryError: A folder that the model needs belongs to another one.
    """
    for name in folder_names(model.name, numbers, model.layout) if numbers else ():
        owner = owner_of(repository / name)
        if owner is not None and owner != model.name:
            raise RepositoryError(
                f"{repository / name} belongs to the model {owner!r}, and {model.name!r} needs a folder of that name",
                hint="give one of the two another name, or publish it in a repository of its own",
            )


def kept_versions(repository: Path, model: ModelSpec, fresh: Collection[int], *, replace: bool) -> Kept:
    """What the model that clients call knows of the versions that are not published anew.

    Args:
        repository: The model repository.
        model: The model.
        fresh: Versions that are published anew.
        replace: Whether a version that cannot be kept, and that the spec does not have either, may be left out.

    Raises:
        RepositoryError: What it knew of a version cannot be read, and the version has to be built again first.
    """
    kept: dict[int, ServedVersion] = {}
    broken: dict[int, RepositoryError] = {}
    for number, file in served_versions(repository / model.name).items():
        if number not in fresh:
            try:
                kept[number] = read_served_version(file)
            except RepositoryError as error:
                broken[number] = error
    to_build = sorted(number for number in broken if number in model.versions)
    if to_build or (broken and not replace):
        number = (to_build or sorted(broken))[0]
        raise RepositoryError(
            f"{model.name} version {number} is damaged, and no other can be published beside it: "
            f"{broken[number].message}",
            hint=_way_out(to_build),
        )
    return Kept(kept, tuple(sorted(broken)))


def _way_out(to_build: Collection[int]) -> str:
    match list(to_build):
        case []:
            return "the spec does not have it: put it there and build it again, or pass --replace to leave it out"
        case [number]:
            return f"build it again: --version {number} --replace"
        case _:
            return "build all versions of the model again that are damaged: --replace without --version"
