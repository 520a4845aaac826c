"""One real server for all tests of the gateway that need Triton."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtime.gateway.repository import write_repository
from tritonforge.server import ServerOptions, start_embedded
from tritonforge.server.embedded import RunningServer


@pytest.fixture(scope="session")
def gateway_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A Triton with the model `talker` and its stand-in engines."""
    folder = tmp_path_factory.mktemp("gateway")
    repository = write_repository(folder / "model_repository", folder / "checkpoint")
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=10)
    with start_embedded(repository, options=options) as server:
        yield server
