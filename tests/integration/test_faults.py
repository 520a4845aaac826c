"""An engine that dies under its requests: they fail with the reason, at once, and the next ones are answered."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.conftest import Served
from tests.support.processes import children, model_processes, wait_until
from tritonforge.client import Client
from tritonforge.errors import ClientError, TimedOut

pytestmark = pytest.mark.triton
TOLD_WITHIN_S = 15.0


def kill_worker(served: Served, engine: str) -> None:
    """Kill the process that holds an engine's pipeline."""
    (stub,) = model_processes(served.server.pid, engine)
    workers = children(stub)
    assert workers
    for worker in workers:
        os.kill(worker, signal.SIGKILL)


@contextmanager
def kill_later(served: Served, engine: str) -> Iterator[None]:
    """Kill an engine's worker as soon as the engine has begun one request more."""
    with Client(served.server.grpc_url) as observer:

        def begun() -> int:
            return observer.statistics(engine)[0].inference_count

        before = begun()

        def wait_and_kill() -> None:
            wait_until(lambda: begun() > before)
            kill_worker(served, engine)

        thread = threading.Thread(target=wait_and_kill, daemon=True)
        thread.start()
        try:
            yield
        finally:
            thread.join(60.0)


def answers(client: Client) -> bool:
    """Whether version 1 answers again."""
    try:
        client.generate("tale", "once", max_tokens=1, version=1)
    except ClientError:
        return False
    return True


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_killed_engine_worker_fails_its_requests_and_comes_back(client: Client, served: Served, stream: bool) -> None:
    whole = client.generate("tale", "once upon a time", max_tokens=8, version=1).text
    options = {"max_tokens": 1900, "min_length": 1900, "version": 1, "timeout_s": TOLD_WITHIN_S}

    if stream:
        chunks = client.stream("tale", "once upon a time", **options)
        next(chunks)
        kill_worker(served, "tale_engine_v1")
        started = time.monotonic()
        with pytest.raises(ClientError) as caught:
            list(chunks)
    else:
        started = time.monotonic()
        with kill_later(served, "tale_engine_v1"), pytest.raises(ClientError) as caught:
            client.generate("tale", "once upon a time", **options)

    assert not isinstance(caught.value, TimedOut)
    assert time.monotonic() - started < TOLD_WITHIN_S
    assert "tale_engine_v1" in str(caught.value)
    wait_until(lambda: answers(client), timeout_s=60.0)
    assert client.generate("tale", "once upon a time", max_tokens=8, version=1).text == whole
