"""Names and places in a model repository and in the folder beside it. Pure but for what lists models and versions."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from tritonforge.errors import RepositoryError
from tritonforge.repository.manifest import MANIFEST_NAME, Manifest, read_manifest

GATEWAY_VERSION = 1
CONFIG_NAME = "config.pbtxt"
SERVING_NAME = "serving.json"
VERSION = re.compile(r"[1-9][0-9]{0,9}")
ENGINE_MODEL = re.compile(r"(?P<model>.+)_engine_v(?P<version>[1-9][0-9]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """One engine version in a repository.

    Args:
        model: Public name of the model.
        number: Version number.
        engine_model: Name of its Triton model.
        folder: Its version folder.
        manifest: What it was made from.
    """

    model: str
    number: int
    engine_model: str
    folder: Path
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A model with a gateway, as found on disk.

    Args:
        name: Public name, and name of the gateway's folder.
        versions: Its engine versions, lowest first.
    """

    name: str
    versions: tuple[PublishedVersion, ...]


def engine_model_name(model: str, number: int) -> str:
    """Name of the Triton model that serves version `number` of `model`."""
    return f"{model}_engine_v{number}"


def split_engine_model_name(name: str) -> tuple[str, int] | None:
    """Model and version number of an engine model's name; None when it is not one."""
    match = ENGINE_MODEL.fullmatch(name)
    return (match["model"], int(match["version"])) if match else None


def staging_folder(forge: Path) -> Path:
    """Folder that is laid out like the repository and holds what is about to be published."""
    return forge / "staging" / "tree"


def archive_folder(forge: Path, generation: int) -> Path:
    """Folder, laid out like the repository, of what a generation replaced."""
    return forge / "archive" / f"{generation:06d}"


def served_versions(gateway: Path) -> dict[int, Path]:
    """The serving.json of each engine version that the model which clients call knows, by number, lowest first."""
    files = gateway.glob(f"{GATEWAY_VERSION}/versions/*/{SERVING_NAME}")
    return dict(sorted((int(file.parent.name), file) for file in files if VERSION.fullmatch(file.parent.name)))


def serving_folder(gateway: Path, number: int) -> Path:
    """Folder in a gateway with the tokenizer and defaults of one engine version."""
    return gateway / str(GATEWAY_VERSION) / "versions" / str(number)


def list_models(repository: Path) -> list[PublishedModel]:
    """The models that tritonforge published, by name. Models made otherwise are left out.

    Raises:
        RepositoryError: A manifest is there but cannot be read.
    """
    versions: dict[str, list[PublishedVersion]] = {}
    for path in _manifests(repository):
        version = _published_version(path)
        if version is not None:
            versions.setdefault(version.model, []).append(version)
    return [
        PublishedModel(name, tuple(sorted(versions.get(name, []), key=lambda version: version.number)))
        for name in model_names(repository)
    ]


def model_names(repository: Path) -> list[str]:
    """Public names of the models that tritonforge published. Reads no manifest."""
    found = repository.glob(f"*/{GATEWAY_VERSION}/versions/*/{SERVING_NAME}")
    return sorted({path.parents[3].name for path in found})


def readable_versions(repository: Path) -> list[PublishedVersion]:
    """The engine versions of all models that have a gateway, without those whose manifest cannot be read."""
    found: list[PublishedVersion] = []
    names = model_names(repository)
    for path in _manifests(repository):
        with contextlib.suppress(RepositoryError):
            version = _published_version(path)
            if version is not None and version.model in names:
                found.append(version)
    return sorted(found, key=lambda version: (version.model, version.number))


def owner_of(folder: Path) -> str | None:
    """Public name of the model that a folder of a repository belongs to; None when nothing in it tells."""
    if any(folder.glob(f"{GATEWAY_VERSION}/versions/*/{SERVING_NAME}")):
        return folder.name
    for path in sorted(folder.glob(f"*/{MANIFEST_NAME}")):
        with contextlib.suppress(RepositoryError):
            return read_manifest(path).model
    return None


def find_version(repository: Path, model: str, number: int) -> PublishedVersion | None:
    """One published engine version, or None when it is not there.

    Raises:
        RepositoryError: Its manifest cannot be read.
    """
    path = repository / engine_model_name(model, number) / str(number) / MANIFEST_NAME
    return _published_version(path) if path.is_file() else None


def _manifests(repository: Path) -> list[Path]:
    return sorted(repository.glob(f"*/*/{MANIFEST_NAME}"))


def _published_version(manifest_path: Path) -> PublishedVersion | None:
    folder = manifest_path.parent
    parts = split_engine_model_name(folder.parent.name)
    if parts is None or folder.name != str(parts[1]):
        return None
    return PublishedVersion(parts[0], parts[1], folder.parent.name, folder, read_manifest(manifest_path))
