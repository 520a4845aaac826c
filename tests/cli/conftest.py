"""A real server for the commands that drive one."""

from collections.abc import Iterator

import pytest

from tests.support.triton_models import write_echo, write_talker
from tritonforge.server import RunningServer, ServerOptions, start_embedded


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    repository = tmp_path_factory.mktemp("cli") / "models"
    write_talker(repository)
    write_echo(repository)
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, ready_timeout_s=60)
    with start_embedded(repository, options=options) as running:
        yield running
