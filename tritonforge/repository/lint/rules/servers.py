"""Versions of one model that no server can load together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from tritonforge.errors import RepositoryError
from tritonforge.repository.layout import engine_model_name, served_versions
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import Problem, RepositoryRule
from tritonforge.repository.lint.view import ModelView, RepositoryView
from tritonforge.repository.manifest import MANIFEST_NAME, Manifest, read_manifest
from tritonforge.repository.routes import parse_routes
from tritonforge.repository.servers import servers_of, several_servers


def _one_server_loads_all(repository: RepositoryView) -> Iterator[Problem]:
    for model in repository.checked_models:
        servers = servers_of(_manifests(model, repository))
        asked = {number: server for number, server in servers.items() if _weights(model).get(number, 0.0) > 0}
        if problem := several_servers(asked):
            what, severity = "they share the traffic, and requests for those that are not loaded fail", Severity.WARNING
        elif problem := several_servers(servers):
            what, severity = "not all of them have traffic, so nothing fails yet", Severity.INFO
        else:
            continue
        yield Problem(
            f"{problem}; {what}",
            "give the traffic to versions that one server can load; run the others in a server of their own",
            line=model.parameter_line("routes"),
            path=model.config_file,
            severity=severity,
        )


def _manifests(model: ModelView, repository: RepositoryView) -> dict[int, Manifest]:
    """The manifests of the versions behind a model that clients call; those that cannot be read are another rule's."""
    found = {}
    for number in served_versions(model.folder):
        engine = repository.models.get(engine_model_name(model.name, number))
        if engine is not None:
            with suppress(RepositoryError):
                found[number] = read_manifest(engine.folder / str(number) / MANIFEST_NAME)
    return found


def _weights(model: ModelView) -> dict[int, float]:
    with suppress(RepositoryError):
        return dict(parse_routes(model.parameter("routes") or "", source="parameter").weights)
    return {}


SERVER_RULES = (
    RepositoryRule(
        "several-servers",
        Severity.WARNING,
        "A container of Triton has one release of TensorRT-LLM, or vLLM: one server cannot load versions of two.",
        _one_server_loads_all,
    ),
)
