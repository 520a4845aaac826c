"""What a published version has lost since it was published: against its manifest, by names and sizes alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tritonforge.errors import RepositoryError
from tritonforge.repository.ensemble import EnsembleNames
from tritonforge.repository.layout import CONFIG_NAME, GATEWAY_VERSION, SERVING_NAME, PublishedVersion, serving_folder
from tritonforge.repository.pbtxt import read_config
from tritonforge.repository.serving import read_served_version
from tritonforge.repository.traffic import read_routes
from tritonforge.spec.layout import ENSEMBLE, GATEWAY

_PROGRAM = "model.py"
# What a server reads of a version beside its config and the files of its manifest.
_RENDERED = {"openvino": (_PROGRAM,), "llmapi": (_PROGRAM, "model.yaml"), "vllm": ("model.json",)}
_FILES_SHOWN = 3


def damage_of(repository: Path, version: PublishedVersion) -> tuple[str, ...]:
    """What is missing or broken of a version and of the model that clients call for it, one phrase each. Reads little.

    Args:
        repository: The model repository.
        version: The version.
    """
    lost = list(_lost_files(version))
    more = [f"{len(lost) - _FILES_SHOWN} more of its files are not as they were"] if len(lost) > _FILES_SHOWN else []
    return (*lost[:_FILES_SHOWN], *more, *_lost_around(repository, version))


def _lost_files(version: PublishedVersion) -> Iterator[str]:
    needed: dict[str, int | None] = dict.fromkeys(_RENDERED.get(version.manifest.kind, ()))
    yield from _lost(version.folder, needed | dict(version.manifest.files))
    config = version.folder.parent / CONFIG_NAME
    yield from _lost(config.parent, {CONFIG_NAME: None})
    try:
        if config.is_file():
            read_config(config)
    except RepositoryError as error:
        yield f"its file {CONFIG_NAME} cannot be read ({error.message})"


def _lost(folder: Path, sizes: Mapping[str, int | None]) -> Iterator[str]:
    """Files that are not there in the size that they had; None takes any size."""
    for name, expected in sorted(sizes.items()):
        size = _size_of(folder / name)
        if size is None:
            yield f"its file {name} is missing"
        elif expected is not None and size != expected:
            yield f"its file {name} has {size} bytes; it was published with {expected}"


def _size_of(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except (OSError, ValueError):  # also a name that is none
        return None


def _lost_around(repository: Path, version: PublishedVersion) -> Iterator[str]:
    layout = ENSEMBLE if version.manifest.settings.get("layout") == ENSEMBLE else GATEWAY
    if layout == ENSEMBLE:
        parts = EnsembleNames(version.model, version.number).parts
        yield from (f"its model {part} is missing" for part in parts if not (repository / part / CONFIG_NAME).is_file())
    public = repository / version.model
    serving = serving_folder(public, version.number) / SERVING_NAME
    if not public.is_dir():
        yield f"its {layout} is missing"
        return
    if layout == GATEWAY and not (public / str(GATEWAY_VERSION) / _PROGRAM).is_file():
        yield f"its gateway's {_PROGRAM} is missing"
    if not serving.is_file():
        yield f"its {SERVING_NAME} in the {layout} is missing"
        return
    try:
        read_served_version(serving)
        read_routes(repository, version.model)
    except RepositoryError as error:
        yield f"its {layout} cannot be read ({error.message})"
