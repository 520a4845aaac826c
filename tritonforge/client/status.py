"""What a server serves and how it has fared, in one value."""

from __future__ import annotations

from dataclasses import dataclass

from tritonforge.client.sync import Client
from tritonforge.client.types import ModelInfo, ModelStatistics


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One version of a model.

    Args:
        name: The model's name.
        version: Numeric version; empty when none was ever loaded.
        state: As in `ModelInfo`.
        reason: As in `ModelInfo`.
        requests: Requests that it took since it was loaded. Triton counts a decoupled model's request as a success when
            the model has taken it, whatever it then answers; its times say as little, so they are not shown.
        failures: Requests that failed before the model took them, since it was loaded.
    """

    name: str
    version: str
    state: str
    reason: str
    requests: int
    failures: int


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server.

    Args:
        url: The address that was asked.
        name: For example ``triton``.
        version: Its version.
        ready: Whether it and all its models are ready.
        models: The versions that it knows of.
    """

    url: str
    name: str
    version: str
    ready: bool
    models: tuple[ModelStatus, ...]


def read_status(client: Client) -> ServerStatus:
    """Ask a server for its models and their counters."""
    server = client.metadata()
    statistics = {(entry.name, entry.version): entry for entry in client.statistics()}
    models = [_status(entry, statistics.get((entry.name, entry.version))) for entry in client.models()]
    return ServerStatus(client.url, server.name, server.version, client.ready(), tuple(models))


def _status(entry: ModelInfo, counters: ModelStatistics | None) -> ModelStatus:
    requests = counters.success_count if counters else 0
    failures = counters.fail_count if counters else 0
    return ModelStatus(entry.name, entry.version, entry.state, entry.reason, requests, failures)
