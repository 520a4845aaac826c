"""forge-manifest.json: what a version folder was made from.

Programs write it, so the reader ignores keys that it does not know.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tritonforge.errors import RepositoryError

MANIFEST_NAME = "forge-manifest.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """Where a version folder comes from.

    Args:
        model: Public name of the model.
        version: Version number.
        kind: ``openvino``, ``tensorrt_llm`` or ``gateway``.
        checkpoint_digest: Digest of the source checkpoint.
        spec_digest: Digest of the part of the specification that it was built from.
        created: When, as ISO 8601 in UTC.
        tools: Versions of what built it, by name.
        release: TensorRT-LLM release that built the engine; None for other engines.
        gpu_architecture: For example ``sm_90``; None when the engine is not bound to one.
        parents: Digests of what it was derived from.
        files: Size in bytes of each engine file, by its path relative to the version folder.
        settings: The part of the specification that it was built from, so that a later one can be compared with it.
        schema: Counts up when the meaning of a key changes.
    """

    model: str
    version: int
    kind: str
    checkpoint_digest: str
    spec_digest: str
    created: str
    tools: Mapping[str, str] = field(default_factory=dict)
    release: str | None = None
    gpu_architecture: str | None = None
    parents: tuple[str, ...] = ()
    files: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    schema: int = SCHEMA


def manifest_text(manifest: Manifest) -> str:
    """The manifest as JSON text."""
    return json.dumps(dataclasses.asdict(manifest), indent=2, ensure_ascii=False) + "\n"


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        RepositoryError: It cannot be read, is not JSON, lacks a key, or was written by a newer release.
    """
    known = {item.name for item in dataclasses.fields(Manifest)}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        schema = int(values["schema"])
        fields = {key: value for key, value in values.items() if key in known}
        manifest = Manifest(**fields | {"parents": tuple(fields.get("parents", ()))})
        _require_types(manifest)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise RepositoryError(
            f"{path}: not a readable manifest ({error})", hint="build this version again with --replace"
        ) from error
    if schema > SCHEMA:
        raise RepositoryError(
            f"{path}: schema is {schema}; this release reads up to {SCHEMA}",
            hint="use the release of tritonforge that published it, or a newer one",
        )
    return manifest


def _require_types(manifest: Manifest) -> None:
    """Refuse a manifest whose values are of another type than those that are written."""
    texts = (manifest.model, manifest.kind, manifest.checkpoint_digest, manifest.spec_digest, manifest.created)
    optional = tuple(text for text in (manifest.release, manifest.gpu_architecture) if text is not None)
    if not all(isinstance(text, str) for text in (*texts, *optional, *manifest.parents)):
        raise TypeError("a text is something else")
    if not all(isinstance(part, Mapping) for part in (manifest.tools, manifest.files, manifest.settings)):
        raise TypeError("tools, files or settings is no object")
    if not all(isinstance(number, int) for number in (manifest.version, *manifest.files.values())):
        raise TypeError("the version or the size of a file is no whole number")
