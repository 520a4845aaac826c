"""Folders: what Triton takes for a model, and what a model folder must hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tritonforge.repository.layout import CONFIG_NAME
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem, RepositoryRule
from tritonforge.repository.lint.view import ModelView, RepositoryView

MOST_SHOWN = 80  # characters of a name


def _dangling_links_at_the_root(repository: RepositoryView) -> Iterator[Problem]:
    for path in sorted(repository.root.iterdir()):
        if path.is_symlink() and not path.exists():
            yield Problem(
                f"{path.name} is a link to something that does not exist; Triton then lists no model of the repository",
                "remove the link, or restore what it points to",
                path=path,
            )


def _is_a_repository(repository: RepositoryView) -> Iterator[Problem]:
    path = repository.root / CONFIG_NAME
    if path.is_file():
        yield Problem(
            f"there is a {CONFIG_NAME} at the root: this is a model folder, not a repository",
            f"check {repository.root.resolve().parent}, the folder that holds the model folders",
            path=path,
        )


def _can_be_read(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for folder in (model.folder, *model.versions.values()):
        os.scandir(folder).close()  # an OSError stands for a problem of this rule, whatever rule meets it
    yield from ()


def unreadable(error: OSError) -> Problem:
    """The problem that a file or folder cannot be looked at."""
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, (str, bytes)) else None
    return Problem(
        f"{'something' if path is None else path.name[:MOST_SHOWN]} cannot be read: {error.strerror or error}; not "
        f"everything could be checked",
        "check its name and rights, or run this as the user who runs the server",
        path=path,
    )


def _not_a_model(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.name.startswith("."):
        yield Problem(
            f"hidden folder {model.name} is taken for a model, and the server does not start because it cannot load it",
            "move it out of the repository; keep notes and version control beside it",
            path=model.folder,
        )
    elif (
        model.text is None and model.encoding_error is None and model.backend is None and not _has_custom_config(model)
    ):
        near = next((path.name for path in model.entries if _looks_like_config(path.name)), None)
        found = f"; it holds {near}, which Triton does not read" if near else ""
        yield Problem(
            f"folder {model.name} has no {CONFIG_NAME} and no model file that Triton knows{found}; Triton takes every "
            f"folder of a repository for a model and fails on this one",
            f"rename {near} to {CONFIG_NAME}"
            if near
            else "move the folder out of the repository, or add a config.pbtxt",
            path=model.folder,
        )


def _config_missing(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.text is None and model.encoding_error is None and model.backend is not None and model.name[0] != ".":
        yield Problem(
            f"there is no {CONFIG_NAME}; Triton guesses backend {model.backend!r} from the files, and refuses the "
            f"model when started with --disable-auto-complete-config",
            f"write a {CONFIG_NAME}",
            path=model.folder,
        )


def _dangling_links_in_the_model(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for path in model.entries:
        if path.is_symlink() and not path.exists():
            yield Problem(
                f"{path.name} is a link to something that does not exist; Triton cannot list the folder then",
                "remove the link, or restore what it points to",
                path=path,
            )


def _change_detection(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for path in model.entries:
        if CONFIG_NAME.startswith(path.name) and path.name != CONFIG_NAME:
            yield Problem(
                f"{path.name} beside {CONFIG_NAME} disables Triton's detection of changes: loading the model again "
                f"changes nothing",
                f"rename {path.name}",
                path=path,
            )


def _has_custom_config(model: ModelView) -> bool:
    return any(path.suffix == ".pbtxt" for path in model.folder.glob("configs/*"))


def _looks_like_config(name: str) -> bool:
    return name.lower().split(".")[0] == "config"


UNREADABLE = ModelRule(
    "unreadable",
    Severity.ERROR,
    "A server that runs as the same user can read no more than this check could.",
    _can_be_read,
    needs_config=False,
)
ROOT_RULES = (
    RepositoryRule(
        "model-folder",
        Severity.ERROR,
        "Triton is started with the folder that holds the model folders; given a model folder, it finds no models.",
        _is_a_repository,
    ),
    RepositoryRule(
        "dangling-link",
        Severity.ERROR,
        "A broken link at the root of a repository hides all of its models; inside a model folder it stops the model.",
        _dangling_links_at_the_root,
    ),
)
LAYOUT_RULES = (
    UNREADABLE,
    ModelRule(
        "stray-directory",
        Severity.ERROR,
        "Triton takes every folder at the root of a repository for a model, hidden ones too. One that is none fails to "
        "load, and by default the server then does not start.",
        _not_a_model,
        needs_config=False,
    ),
    ModelRule(
        "config-missing",
        Severity.WARNING,
        "Without a config.pbtxt, Triton guesses from file names and asks the backend for the rest; not all can answer.",
        _config_missing,
        needs_config=False,
    ),
    ModelRule(
        "dangling-link",
        Severity.ERROR,
        "A broken link at the root of a repository hides all of its models; inside a model folder it stops the model.",
        _dangling_links_in_the_model,
        needs_config=False,
    ),
    ModelRule(
        "change-detection",
        Severity.WARNING,
        "A file or folder whose name begins config.pbtxt (for example config) confuses Triton's time stamps.",
        _change_detection,
        needs_config=False,
    ),
)
