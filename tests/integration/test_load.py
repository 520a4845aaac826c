"""Many requests at once, and requests whose client goes away."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.conftest import Served
from tests.support.processes import wait_until
from tritonforge.client import Client

pytestmark = pytest.mark.triton
CLIENTS = 32
FREED_WITHIN_S = 20.0


def prompt_and_length(number: int) -> tuple[str, int]:
    """Mixed lengths: prompts of 1 to 60 words, answers of 4 to 47 tokens."""
    return " ".join(["word", "and", str(number)] * (1 + number % 20)), 4 + (number * 7) % 44


def test_32_streams_at_once_give_what_each_gives_alone(served: Served) -> None:
    with Client(served.server.grpc_url) as client:

        def ask(number: int) -> str:
            prompt, length = prompt_and_length(number)
            return "".join(chunk.text for chunk in client.stream("tale", prompt, max_tokens=length, version=1))

        alone = [ask(number) for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            together = list(pool.map(ask, range(CLIENTS)))

    assert together == alone


def test_client_that_leaves_frees_the_engine(client: Client, served: Served, grpc_client: Client) -> None:
    """The engine ends the request long before its 1,900 tokens are made."""
    before = requests_done(grpc_client)
    started = time.monotonic()
    stream = client.stream("tale", "once upon a time", max_tokens=1900, min_length=1900, version=1)
    next(stream)
    stream.close()

    wait_for_requests(grpc_client, before + 2)  # the request and its stop
    cancelled_after_s = time.monotonic() - started

    full_started = time.monotonic()
    grpc_client.generate("tale", "once upon a time", max_tokens=1900, min_length=1900, version=1)
    assert cancelled_after_s < (time.monotonic() - full_started) / 2


def test_deadline_of_the_client_frees_the_engine(grpc_client: Client) -> None:
    before = requests_done(grpc_client)

    with pytest.raises(Exception, match="no answer within"):
        grpc_client.generate("tale", "once upon a time", max_tokens=1900, min_length=1900, version=1, timeout_s=0.4)

    wait_for_requests(grpc_client, before + 2)


def requests_done(client: Client) -> int:
    """Requests that version 1's engine has ended, whatever their outcome."""
    (statistics,) = client.statistics("tale_engine_v1")
    return statistics.success_count + statistics.fail_count


def wait_for_requests(client: Client, wanted: int) -> None:
    wait_until(lambda: requests_done(client) >= wanted, timeout_s=FREED_WITHIN_S)
