"""Text engines whose process dies inside a real Triton: found by a probe that costs their engine nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.runtime.gateway.text_repository import LLMAPI, POLY, VLLM, install_backend, write_repository
from tests.support.processes import model_processes, wait_until
from tritonforge.client import Client
from tritonforge.errors import ClientError
from tritonforge.server import RunningServer, ServerOptions, start_embedded

pytestmark = pytest.mark.triton

DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of its own: Triton waits for the lost requests until its exit timeout."""
    folder = tmp_path_factory.mktemp("mortal")
    repository = write_repository(folder)
    install_backend(folder / "cache")
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=1, cache=folder / "cache")
    with start_embedded(repository, options=options) as running:
        yield running


@pytest.mark.parametrize("version", [VLLM, LLMAPI], ids=["vllm", "llmapi"])
def test_a_dead_engine_is_found_when_it_has_been_silent(server: RunningServer, version: int) -> None:
    engine, arrived = f"{POLY}_engine_v{version}", set()
    with Client(server.grpc_url, timeout_s=DEADLINE_S) as client, ThreadPoolExecutor(1) as pool:

        def read() -> None:
            for _ in client.stream(POLY, "go on", max_tokens=700, version=version):
                arrived.add("token")

        stream = pool.submit(read)
        wait_until(lambda: bool(arrived), "the first token")
        (process,) = model_processes(server.pid, engine)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(ClientError, match=f"engine model '{engine}': its process has ended"):
            stream.result(DEADLINE_S)
