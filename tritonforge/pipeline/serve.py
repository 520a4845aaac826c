"""A repository as it is to be, then a server on it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tritonforge.errors import EngineMismatch
from tritonforge.events import OnEvent, ignore
from tritonforge.pipeline.compatibility import Advice, ServerFacts
from tritonforge.pipeline.load import check_version, engines_of
from tritonforge.repository.ensemble import EnsembleNames
from tritonforge.repository.layout import PublishedModel, PublishedVersion, list_models
from tritonforge.repository.publish import recover
from tritonforge.repository.traffic import is_ensemble
from tritonforge.server.embedded import BACKENDS
from tritonforge.server.launcher import RunningServer, start_embedded, wanted_models
from tritonforge.server.options import ServerOptions

# Its release of Triton does not matter: it has no backend that is bound to one.
EMBEDDED = ServerFacts(backends=BACKENDS)


def serve(repository: Path, *, options: ServerOptions | None = None, on_event: OnEvent = ignore) -> RunningServer:
    """Undo what a killed build left half published, then start the embedded Triton and wait until it is ready.

    Args:
        repository: The model repository.
        options: How the server is started; the defaults of `ServerOptions` when None.
        on_event: Called with one line for each engine that is left out.

    Returns:
        The server, which its context stops.

    Raises:
        RepositoryError: The repository does not exist, is empty, cannot be put back, or is being changed.
        EngineMismatch: The embedded server cannot run an engine that it is to load.
        ServerError: The server could not be started, or a model did not become ready.
        ToolMissing: nvidia-pytriton or libpython is not installed.
    """
    recover(repository)
    options = options or ServerOptions()
    if options.models is None:
        _refuse_unfit(repository, wanted_models(repository, None))
    else:
        options = replace(options, models=_fitting(repository, options.models, on_event))
    return start_embedded(repository, options=options)


def with_engines(repository: Path, models: Sequence[str]) -> tuple[str, ...]:
    """The models, and behind each gateway the engine models that it routes to: alone it could answer nothing.

    Args:
        repository: The model repository.
        models: Names of Triton models, in the order in which they were asked for.
    """
    engines = {model.name: _models_behind(repository, model) for model in list_models(repository)}
    wanted = [name for model in models for name in (model, *engines.get(model, ()))]
    return tuple(dict.fromkeys(wanted))


def _models_behind(repository: Path, model: PublishedModel) -> list[str]:
    """Engine models of every version; of an ensemble also what stands around each, so that it can be asked by name."""
    names = [version.engine_model for version in model.versions]
    if is_ensemble(repository, model.name):
        names += [part for version in model.versions for part in EnsembleNames(model.name, version.number).parts]
    return names


def _refuse_unfit(repository: Path, models: Sequence[str]) -> None:
    """Refuse the first engine that cannot be run, and say how the rest can be served."""
    faults = [error for version in engines_of(repository, models) if (error := _unfit(version))]
    if not faults:
        return
    published = list_models(repository)
    behind = {name for model in published for name in _models_behind(repository, model)}
    dead = {model.name for model in published if _reason_not_to_serve(repository, model)}
    names = [name for name in models if name not in behind | dead]
    hint = faults[0].hint
    if names:
        argv = ["tritonforge", "serve", str(repository), *(word for name in names for word in ("--model", name))]
        hint = f"{hint}; the rest is served by: {shlex.join(argv)}"
    raise EngineMismatch(faults[0].message, hint=hint)


def _fitting(repository: Path, models: Sequence[str], on_event: OnEvent) -> tuple[str, ...]:
    """The models and their engines, without the engines that cannot be run here and that nobody has named."""
    for version in engines_of(repository, models):
        if error := _unfit(version):
            raise error
    for model in list_models(repository):
        if model.name in models and (error := _reason_not_to_serve(repository, model)):
            raise error
    wanted = list(with_engines(repository, models))
    for version in list(engines_of(repository, wanted)):
        if error := _unfit(version):
            on_event(f"left out: {error.message}")
            wanted.remove(version.engine_model)
    return tuple(wanted)


def _reason_not_to_serve(repository: Path, model: PublishedModel) -> EngineMismatch | None:
    """Why a model cannot be served at all: a gateway serves the versions that are there, an ensemble needs its own."""
    faults = [error for version in model.versions if (error := _unfit(version))]
    is_needed = is_ensemble(repository, model.name) or len(faults) == len(model.versions)
    return faults[0] if faults and is_needed else None


def _unfit(version: PublishedVersion) -> EngineMismatch | None:
    try:
        check_version(version, EMBEDDED, Advice(version.folder.parents[1]))
    except EngineMismatch as error:
        return error
    return None
