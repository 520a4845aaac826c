"""A repository as it is to be, then a server on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tritonforge.repository.ensemble import EnsembleNames
from tritonforge.repository.layout import PublishedModel, list_models
from tritonforge.repository.publish import recover
from tritonforge.repository.traffic import is_ensemble
from tritonforge.server.launcher import RunningServer, start_embedded
from tritonforge.server.options import ServerOptions


def serve(repository: Path, *, options: ServerOptions | None = None) -> RunningServer:
    """Undo what a killed build left half published, then start the embedded Triton and wait until it is ready.

    Args:
        repository: The model repository.
        options: How the server is started; the defaults of `ServerOptions` when None.

    Returns:
        The server, which its context stops.

    Raises:
        RepositoryError: The repository does not exist, is empty, cannot be put back, or is being changed.
        ServerError: The server could not be started, or a model did not become ready.
        ToolMissing: nvidia-pytriton or libpython is not installed.
    """
    recover(repository)
    options = options or ServerOptions()
    if options.models is not None:
        options = replace(options, models=with_engines(repository, options.models))
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
