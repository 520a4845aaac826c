"""Change how a model's traffic is split: on disk, and in force on a running server, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tritonforge.client import Client
from tritonforge.events import OnEvent, ignore
from tritonforge.pipeline.live import LiveServer
from tritonforge.pipeline.together import served_apart
from tritonforge.repository.routes import Routes
from tritonforge.repository.traffic import set_routes


def change_traffic(
    repository: Path, model: str, weights: Mapping[int, float], *, server: str | None, on_event: OnEvent = ignore
) -> Routes:
    """Give a model other weights. The gateway alone is loaded again: no engine is, and no request is lost.

    Args:
        repository: The model repository.
        model: Public name of the model.
        weights: Weight by version number; versions that are left out get nothing.
        server: gRPC address of the server that serves the repository; None changes the files only.
        on_event: Called with a warning when no server can load all versions that get traffic.

    Returns:
        The new routes.

    Raises:
        RepositoryError: There is no such model or version, or the weights route nothing.
        PublishFailed: The server did not take the change; the old weights are in force.
    """
    warning = served_apart(repository, model, [number for number, weight in weights.items() if weight > 0])
    if warning is not None:
        on_event(f"warning: {warning}")
    if server is None:
        return set_routes(repository, model, weights)
    with Client(server) as client:
        live = LiveServer(client, gateway=model, engines=())
        return set_routes(repository, model, weights, apply=live.take, undo=live.take_back)
