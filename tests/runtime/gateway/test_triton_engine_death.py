"""An engine whose process dies inside a real Triton, which never answers the requests that were under way."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.runtime.gateway.repository import MODEL, SLOW, write_repository
from tests.support.processes import model_processes, wait_until
from tritonforge.client import Client
from tritonforge.errors import ClientError
from tritonforge.server import RunningServer, ServerOptions, start_embedded

pytestmark = pytest.mark.triton

ENGINE = f"{MODEL}_engine_v{SLOW}"
DEADLINE_S = 30.0
DEAD = f"engine model '{ENGINE}': its process has ended .*; unload it and load it again \\(tritonforge unload {ENGINE}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of its own: Triton waits for the lost requests until its exit timeout."""
    folder = tmp_path_factory.mktemp("mortal")
    repository = write_repository(folder / "model_repository", folder / "checkpoint")
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=1)
    with start_embedded(repository, options=options) as running:
        yield running


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    with Client(server.grpc_url, timeout_s=DEADLINE_S) as connected:
        yield connected
        connected.unload(ENGINE)
        connected.load(ENGINE)
        answer = connected.generate(MODEL, "a", max_tokens=2, version=SLOW)
        assert (answer.text, answer.finish_reason) == ("aa", "length")


def kill_under_way(server: RunningServer, client: Client, pool: ThreadPoolExecutor) -> list[Future[object]]:
    """Start three streams, and kill their engine once they bring tokens."""

    def one(number: int) -> None:
        for _ in client.stream(MODEL, "a", max_tokens=200, version=SLOW):
            arrived.add(number)

    arrived: set[int] = set()
    streams: list[Future[object]] = [pool.submit(one, number) for number in range(3)]
    wait_until(lambda: len(arrived) == 3, "the first tokens of all streams")
    (process,) = model_processes(server.pid, ENGINE)
    os.kill(process, signal.SIGKILL)
    return streams


def test_the_next_request_finds_a_dead_engine_and_ends_those_under_way(server: RunningServer, client: Client) -> None:
    with ThreadPoolExecutor(3) as pool:
        streams = kill_under_way(server, client, pool)
        start_s = time.monotonic()
        with pytest.raises(ClientError, match=DEAD):
            client.generate(MODEL, "a", version=SLOW)
        for stream in streams:
            with pytest.raises(ClientError, match=DEAD):
                stream.result(DEADLINE_S)
    assert time.monotonic() - start_s < 4.0


def test_a_dead_engine_is_found_when_it_has_been_silent(server: RunningServer, client: Client) -> None:
    with ThreadPoolExecutor(3) as pool:
        for stream in kill_under_way(server, client, pool):
            with pytest.raises(ClientError, match=DEAD):
                stream.result(DEADLINE_S)
