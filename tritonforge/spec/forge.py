"""The whole of forge.yaml, and the rules that span its models."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from tritonforge.spec.base import MAX_PATH_LENGTH, BrokenRule, ForgeModel, LocalPath, check_path_text, refuse
from tritonforge.spec.layout import folder_names
from tritonforge.spec.model import ModelSpec

FORMAT = 1


def _check_mount(mount: str) -> str:
    check_path_text(mount)
    if not mount.startswith("/"):
        raise ValueError("expected an absolute path, as the server sees it")
    return mount


def _check_format(number: int) -> int:
    if number != FORMAT:
        raise ValueError(f"expected {FORMAT}, the only format that this release knows")
    return number


# Not Literal[1], which takes true for 1.
Format = Annotated[int, AfterValidator(_check_format), WithJsonSchema({"type": "integer", "const": FORMAT})]
Mount = Annotated[
    str,
    AfterValidator(_check_mount),
    WithJsonSchema({"type": "string", "pattern": "^/", "maxLength": MAX_PATH_LENGTH, "examples": ["/models"]}),
]


class ForgeSpec(ForgeModel):
    """What forge.yaml asks for: models, their versions, and the repository that they are published in."""

    schema_: Annotated[Format, Field(alias="schema")]
    """Version of this file's format; 1."""

    repository: LocalPath
    """Folder of the Triton model repository; relative to this file."""

    mount: Mount | None = None
    """Where the server sees the repository, for example /models in a container; left out, its own absolute path."""

    models: Annotated[tuple[ModelSpec, ...], Field(strict=False, min_length=1)]
    """Models that share the repository."""

    @model_validator(mode="after")
    def _models_fit_together(self) -> Self:
        refuse([*_shared_folders(self.models), *_checkpoints_inside(self.models, self.repository)])
        return self


def _shared_folders(models: Sequence[ModelSpec]) -> Iterator[BrokenRule]:
    owners: dict[str, str] = {}
    for index, model in enumerate(models):
        names = folder_names(model.name, model.versions, model.layout)
        taken = next((name for name in names if name in owners), None)
        if taken is not None:
            problem = (
                f"{model.name!r} needs the folder {taken!r} in the repository, and so does model {owners[taken]!r}"
            )
            yield BrokenRule(f"{problem}; expected distinct names", at=("models", index, "name"))
        owners.update(dict.fromkeys(names, model.name))


def _checkpoints_inside(models: Sequence[ModelSpec], repository: str) -> Iterator[BrokenRule]:
    for place, checkpoint in _checkpoints(models):
        if _is_inside(checkpoint, repository):
            problem = f"{checkpoint!r} lies in the repository {repository!r}"
            reason = "because Triton takes every folder there for a model"
            yield BrokenRule(f"{problem}; expected a folder outside, {reason}", at=place)


def _checkpoints(models: Sequence[ModelSpec]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every checkpoint that is written in the specification, after the keys that lead to it."""
    for index, model in enumerate(models):
        yield ("models", index, "checkpoint"), model.checkpoint
        for number, version in model.versions.items():
            if version.checkpoint is not None:
                yield ("models", index, "versions", number, "checkpoint"), version.checkpoint


def _is_inside(path: str, folder: str) -> bool:
    """Whether a path lies in a folder, judged by the text alone; unlike forms (absolute, relative) are never inside."""
    inner, outer = posixpath.normpath(path), posixpath.normpath(folder)
    if outer == ".":
        return not inner.startswith(("/", "..", "~"))
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")
