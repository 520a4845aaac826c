"""One real server for all client tests of this folder, and a client for each protocol."""

from collections.abc import Iterator

import pytest

from tests.support.triton_models import write_echo, write_failing, write_talker
from tritonforge.client import Client
from tritonforge.server import RunningServer, ServerOptions, start_embedded


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    repository = tmp_path_factory.mktemp("client") / "models"
    write_echo(repository)
    write_talker(repository)
    write_talker(repository, "batched", max_batch_size=8)
    write_echo(repository, "spare")
    write_failing(repository)
    wanted = ("echo", "talker", "batched", "spare")
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, models=wanted, ready_timeout_s=60)
    with start_embedded(repository, options=options) as running:
        yield running


@pytest.fixture(params=["grpc", "http"])
def client(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[Client]:
    url = server.grpc_url if request.param == "grpc" else server.http_url
    with Client(url, timeout_s=20) as client:
        yield client
