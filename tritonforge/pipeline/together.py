"""Versions of one model that no server can load together, said before they are built and when they get traffic."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tritonforge.pipeline.plan import ModelPlan
from tritonforge.repository.layout import find_version, readable_versions
from tritonforge.repository.servers import server_of, servers_of, several_servers


def planned_apart(repository: Path, plan: ModelPlan) -> str | None:
    """What is to be known of the servers that a model needs once it is built; None when one loads all its versions.

    Args:
        repository: The model repository.
        plan: What is going to be built.
    """
    name = plan.model.name
    there = [version for version in readable_versions(repository) if version.model == name]
    servers = servers_of({version.number: version.manifest for version in there})
    for planned in plan.versions:
        engine = planned.version.engine
        servers[planned.version.number] = server_of(engine.kind, getattr(engine, "release", None))
    return _named(name, servers)


def served_apart(repository: Path, model: str, numbers: Collection[int]) -> str | None:
    """What is to be known of the servers that some versions of a model need; None when one loads them all.

    Args:
        repository: The model repository.
        model: Public name of the model.
        numbers: Version numbers, for example those with traffic.

    Raises:
        RepositoryError: A manifest cannot be read.
    """
    versions = {number: find_version(repository, model, number) for number in numbers}
    found = {number: version.manifest for number, version in versions.items() if version is not None}
    return _named(model, servers_of(found))


def _named(model: str, servers: dict[int, str | None]) -> str | None:
    problem = several_servers(servers)
    return None if problem is None else f"{model}: {problem}"
