"""The commands that start what serves a repository: our own server, and containers for what that cannot run."""

from __future__ import annotations

import shlex
from pathlib import Path

from tritonforge.pipeline.compatibility import Advice, EngineNeeds
from tritonforge.pipeline.load import needs_of
from tritonforge.repository.layout import list_models
from tritonforge.server.embedded import BACKENDS


def how_to_serve(repository: Path) -> tuple[str, ...]:
    """A command for each server that is needed for all that is published; ours first.

    Args:
        repository: The model repository.

    Raises:
        RepositoryError: A manifest is there but cannot be read.
    """
    engines = [needs_of(version) for model in list_models(repository) for version in model.versions]
    ours = [one for one in engines if one.host_backend in (None, *BACKENDS)]
    others: dict[str | None, list[EngineNeeds]] = {}
    for one in engines:
        if one not in ours:
            others.setdefault(one.container, []).append(one)
    models = dict.fromkeys(one.model for one in ours) if others else {}
    serve = ["tritonforge", "serve", str(repository), *(word for name in models for word in ("--model", name))]
    containers = (Advice(repository).run(image, *needs) for image, needs in others.items() if image is not None)
    return (*([shlex.join(serve)] if ours or not others else []), *containers)
