"""A real Triton that is stopped while the gateway streams."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.runtime.gateway.repository import MODEL, SLOW, write_repository
from tests.support.processes import wait_until
from tritonforge.client import Client
from tritonforge.server import ServerOptions, start_embedded

pytestmark = pytest.mark.triton

EXIT_TIMEOUT_S = 20.0


def test_streams_under_way_finish_and_the_server_ends_soon_after(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "model_repository", tmp_path / "checkpoint")
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=EXIT_TIMEOUT_S)
    arrived: set[int] = set()

    def one(number: int) -> tuple[str | None, float]:
        reason = None
        for chunk in client.stream(MODEL, "a", max_tokens=100, version=SLOW):
            arrived.add(number)
            reason = chunk.finish_reason
        return reason, time.monotonic()

    with (
        start_embedded(repository, options=options) as server,
        Client(server.grpc_url, timeout_s=30) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        streams = [pool.submit(one, number) for number in range(4)]
        wait_until(lambda: len(arrived) == 4, "the first tokens of all streams")
        assert server.stop() == 0
        stopped_s = time.monotonic()
        ends = [stream.result() for stream in streams]
    assert {reason for reason, _ in ends} == {"length"}
    assert stopped_s - max(ended_s for _, ended_s in ends) < EXIT_TIMEOUT_S / 2
