"""The commands that start what serves a repository: our own server, and containers for what that cannot run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tritonforge.errors import RepositoryError
from tritonforge.pipeline.compatibility import Advice, EngineNeeds
from tritonforge.pipeline.needs import needs_of
from tritonforge.repository.layout import readable_versions
from tritonforge.server.embedded import BACKENDS


def how_to_serve(repository: Path) -> tuple[str, ...]:
    """A command for each server that is needed for all that is published and can be read; ours first.

    Args:
        repository: The model repository.
    """
    engines = list(_needs(repository))
    ours = [one for one in engines if one.host_backend in (None, *BACKENDS)]
    others: dict[str | None, list[EngineNeeds]] = {}
    for one in engines:
        if one not in ours:
            others.setdefault(one.container, []).append(one)
    models = dict.fromkeys(one.model for one in ours) if others else {}
    serve = ["tritonforge", "serve", str(repository), *(word for name in models for word in ("--model", name))]
    containers = (Advice(repository).run(image, *needs) for image, needs in others.items() if image is not None)
    return (*([shlex.join(serve)] if ours or not others else []), *containers)


def _needs(repository: Path) -> Iterator[EngineNeeds]:
    for version in readable_versions(repository):
        with suppress(RepositoryError):  # lint names it, and so does a server
            yield needs_of(version)
