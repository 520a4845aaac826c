"""The gateway inside a real Triton, in front of stand-in engines that repeat their prompt."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.runtime.gateway.repository import ABSENT, ECHO, LIMITS, MODEL, REFUSES, SILENT_END, SLOW
from tests.support.processes import wait_until
from tritonforge.client import Client
from tritonforge.errors import InvalidRequest, Rejected, TimedOut
from tritonforge.server import RunningServer

pytestmark = pytest.mark.triton

PROMPT = "The capital of France is Paris, 你好 👋."
DEADLINE_S = 30.0


@pytest.fixture(params=["grpc", "http"])
def client(request: pytest.FixtureRequest, gateway_server: RunningServer) -> Iterator[Client]:
    url = gateway_server.grpc_url if request.param == "grpc" else gateway_server.http_url
    with Client(url, timeout_s=DEADLINE_S) as connected:
        yield connected


@pytest.fixture
def grpc_client(gateway_server: RunningServer) -> Iterator[Client]:
    with Client(gateway_server.grpc_url, timeout_s=DEADLINE_S) as connected:
        yield connected


def engine_counts(client: Client, version: int) -> tuple[int, int, int]:
    """Requests at the engine now, ever started, and ever stopped before their end."""
    one = np.array([[1]], dtype=np.int32)
    inputs = {"input_ids": one * 0, "input_lengths": one, "request_output_len": one}
    (result,) = [r for r in client.infer_stream(f"{MODEL}_engine_v{version}", inputs) if r.outputs]
    running, started, stopped = result.outputs["output_ids"].ravel().tolist()
    return running, started, stopped


def post(server: RunningServer, endpoint: str, fields: dict[str, Any]) -> tuple[int, str]:
    request = urllib.request.Request(
        f"{server.http_url}/v2/models/{MODEL}/{endpoint}", json.dumps(fields).encode(), method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_an_answer_in_one_piece(client: Client) -> None:
    answer = client.generate(MODEL, PROMPT, max_tokens=100)
    assert (answer.text, answer.finish_reason, answer.engine_version) == (PROMPT, "stop", ECHO)
    assert answer.prompt_tokens == answer.completion_tokens


def test_a_stream_adds_up_to_the_same_text_and_ends_with_the_sizes(client: Client) -> None:
    chunks = list(client.stream(MODEL, PROMPT, max_tokens=100))
    assert "".join(chunk.text for chunk in chunks) == PROMPT
    assert "\ufffd" not in "".join(chunk.text for chunk in chunks)
    assert [chunk.finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert (chunks[-1].finish_reason, chunks[-1].engine_version) == ("stop", ECHO)
    assert chunks[-1].completion_tokens == chunks[-1].prompt_tokens


def test_a_chat_goes_through_the_template_and_its_specials_do_not_leak(client: Client) -> None:
    # The engine repeats the prompt, so the end token of the template's first message ends the answer.
    answer = client.generate(MODEL, messages=[{"role": "user", "content": "Hello"}], max_tokens=50)
    assert (answer.text, answer.finish_reason) == ("user\nHello", "stop")


def test_an_engine_that_keeps_its_end_token_to_itself_gives_the_same(client: Client) -> None:
    answer = client.generate(MODEL, PROMPT, max_tokens=100, version=SILENT_END)
    assert (answer.text, answer.finish_reason, answer.engine_version) == (PROMPT, "stop", SILENT_END)


def test_max_tokens_cuts_the_answer(client: Client) -> None:
    answer = client.generate(MODEL, PROMPT, max_tokens=2)
    assert (answer.finish_reason, answer.completion_tokens) == ("length", 2)
    assert PROMPT.startswith(answer.text)


def test_a_stop_word_across_tokens_cuts_the_answer(client: Client) -> None:
    chunks = list(client.stream(MODEL, PROMPT, max_tokens=100, stop_words=["France is"]))
    assert ("".join(chunk.text for chunk in chunks), chunks[-1].finish_reason) == ("The capital of ", "stop")


def test_log_probabilities_pass_through(grpc_client: Client) -> None:
    answer = grpc_client.generate(MODEL, PROMPT, max_tokens=3, return_log_probs=True)
    assert answer.output_log_probs == (-0.5, -0.5, -0.5)
    assert answer.cum_log_probs == pytest.approx(-1.5)


def test_streamed_log_probabilities_come_with_their_tokens(grpc_client: Client) -> None:
    chunks = list(grpc_client.stream(MODEL, PROMPT, max_tokens=3, return_log_probs=True))
    assert [p for chunk in chunks for p in chunk.output_log_probs or ()] == [-0.5, -0.5, -0.5]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_tokens": 0}, "max_tokens is 0; expected an integer from 1 to 2147483647"),
        ({"max_tokens": 1000}, f"what a prompt of 1 leaves of {LIMITS.max_seq_len} (max_seq_len)"),
        ({"temperature": -1.0}, "temperature is -1; expected a finite number of at least 0"),
        ({"version": 99}, "version is 99; expected one of the served versions: 1, 2, 3, 4, 5"),
        ({"text_input": ""}, "text_input is empty; expected a prompt of at least one character"),
        ({"text_input": "a b" * 500}, "(max_input_len)"),
        ({"text_input": "", "messages": "{"}, "messages is not JSON"),
        ({"version": REFUSES}, f"engine model '{MODEL}_engine_v{REFUSES}': no more room for this request"),
        ({"version": ABSENT}, f"engine model '{MODEL}_engine_v{ABSENT}' is not ready; load it"),
    ],
)
@pytest.mark.parametrize("endpoint", ["generate", "generate_stream"])
def test_a_bad_request_gets_one_clear_error(
    gateway_server: RunningServer, endpoint: str, fields: dict[str, Any], message: str
) -> None:
    status, body = post(gateway_server, endpoint, {"text_input": "a", "stream": endpoint != "generate", **fields})
    assert status >= 400
    assert message in json.loads(body.removeprefix("data: "))["error"]


def test_a_request_beside_a_huge_one_is_answered_in_its_usual_time(grpc_client: Client) -> None:
    huge = [{"role": "user" * 5_000_000, "content": "a"}]

    def usual_s() -> float:
        start_s = time.monotonic()
        assert grpc_client.generate(MODEL, "a b", max_tokens=9).text == "a b"
        return time.monotonic() - start_s

    usual_s()
    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(grpc_client.generate, MODEL, messages=huge)
        times_s = [usual_s()]
        while not refused.done():
            times_s.append(usual_s())
        with pytest.raises(Rejected, match=r"messages has 200000\d\d bytes"):
            refused.result()
    assert max(times_s) < 1.0


def test_errors_reach_grpc_clients_with_their_kind(grpc_client: Client) -> None:
    with pytest.raises(InvalidRequest, match="max_tokens is 0"):
        grpc_client.generate(MODEL, "a", max_tokens=0)
    with pytest.raises(Rejected, match="no more room"):
        grpc_client.generate(MODEL, "a", version=REFUSES)


def test_empty_strings_and_text_that_is_no_utf8_are_refused(grpc_client: Client) -> None:
    for text, message in ((b"", "text_input is empty"), (b"\xff", "text_input is not valid UTF-8")):
        with pytest.raises(Rejected, match=message):
            list(grpc_client.infer_stream(MODEL, {"text_input": np.array([[text]], dtype=object)}))


def test_the_inputs_of_nvidias_clients_are_taken(gateway_server: RunningServer) -> None:
    fields = {"text_input": "a b", "max_tokens": 20, "bad_words": "", "stop_words": "", "pad_id": 2, "end_id": 2}
    status, body = post(gateway_server, "generate", {**fields, "beam_width": 1, "top_k": 0, "top_p": 0.0})
    assert (status, json.loads(body)["text_output"]) == (200, "a b")


def test_32_streams_of_mixed_lengths_all_arrive_whole(grpc_client: Client) -> None:
    def one(number: int) -> tuple[str, str]:
        text = f"{number} " + "of France is " * (number % 9 + 1)
        return text, "".join(chunk.text for chunk in grpc_client.stream(MODEL, text, max_tokens=120))

    with ThreadPoolExecutor(32) as pool:
        for text, answer in pool.map(one, range(96)):
            assert answer == text


def test_many_requests_wait_for_their_first_token_at_the_same_time(grpc_client: Client) -> None:
    start_s = time.monotonic()
    with ThreadPoolExecutor(24) as pool:
        list(pool.map(lambda _: grpc_client.generate(MODEL, "a", max_tokens=1, version=SLOW), range(24)))
    # One second each; through Triton's default of a few threads they would take turns.
    assert time.monotonic() - start_s < 4.0


def test_a_client_that_leaves_in_the_middle_frees_the_engine(client: Client, grpc_client: Client) -> None:
    _, _, stopped = engine_counts(grpc_client, SLOW)
    stream = client.stream(MODEL, "a", max_tokens=200, version=SLOW)
    assert [next(stream).text, next(stream).text] == ["a", "a"]
    stream.close()
    wait_until(lambda: engine_counts(grpc_client, SLOW)[0] == 0, "the engine to be free")
    assert engine_counts(grpc_client, SLOW)[2] == stopped + 1


def test_a_client_that_leaves_before_the_first_token_frees_the_engine(grpc_client: Client) -> None:
    _, _, stopped = engine_counts(grpc_client, SLOW)
    with pytest.raises(TimedOut):
        grpc_client.generate(MODEL, "a", max_tokens=200, version=SLOW, timeout_s=0.4)
    wait_until(lambda: engine_counts(grpc_client, SLOW)[2] == stopped + 1, "the engine to be stopped")
    assert engine_counts(grpc_client, SLOW)[0] == 0


def test_a_stop_word_frees_the_engine(grpc_client: Client) -> None:
    _, _, stopped = engine_counts(grpc_client, SLOW)
    answer = grpc_client.generate(MODEL, "ab", max_tokens=200, version=SLOW, stop_words=["bab"])
    assert (answer.text, answer.finish_reason) == ("a", "stop")
    wait_until(lambda: engine_counts(grpc_client, SLOW)[0] == 0, "the engine to be free")
    assert engine_counts(grpc_client, SLOW)[2] == stopped + 1


def test_metrics_count_requests_and_tokens_by_version(grpc_client: Client, gateway_server: RunningServer) -> None:
    def value(line_start: str) -> float:
        with urllib.request.urlopen(gateway_server.metrics_url, timeout=DEADLINE_S) as response:
            lines = response.read().decode().splitlines()
        return next((float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(line_start)), 0.0)

    stops = f'tritonforge_requests_total{{model="{MODEL}",outcome="stop",version="{SILENT_END}"}}'
    tokens = f'tritonforge_completion_tokens_total{{model="{MODEL}",version="{SILENT_END}"}}'
    firsts = f'tritonforge_time_to_first_token_seconds_count{{model="{MODEL}",version="{SILENT_END}"}}'
    before = [value(stops), value(tokens), value(firsts)]
    chunks = list(grpc_client.stream(MODEL, PROMPT, max_tokens=100, version=SILENT_END))
    # Counted after the last response has been sent.
    wait_until(lambda: value(stops) == before[0] + 1, "the request to be counted")
    assert value(tokens) == before[1] + (chunks[-1].completion_tokens or 0)
    assert value(firsts) == before[2] + 1


def test_a_reload_loses_no_stream_and_no_count(grpc_client: Client) -> None:
    def one(_: int) -> str | None:
        return list(grpc_client.stream(MODEL, "ab", max_tokens=100, version=SLOW))[-1].finish_reason

    with ThreadPoolExecutor(4) as pool:
        streams = [pool.submit(one, number) for number in range(4)]
        grpc_client.load(MODEL)
        assert grpc_client.generate(MODEL, "a b", max_tokens=9).text == "a b"
        assert [stream.result(DEADLINE_S) for stream in streams] == ["length"] * 4


def test_a_gateway_that_cannot_load_says_why_and_the_old_one_goes_on(
    grpc_client: Client, gateway_server: RunningServer
) -> None:
    config = gateway_server.repository / MODEL / "config.pbtxt"
    good = config.read_text()
    try:
        config.write_text(good.replace('{"1":', '{"99":'))
        assert config.read_text() != good
        with pytest.raises(Rejected, match="routes gives version 99 a weight; served versions are 1, 2, 3, 4, 5"):
            grpc_client.load(MODEL)
        assert grpc_client.generate(MODEL, "a b", max_tokens=9).text == "a b"
    finally:
        config.write_text(good)
        grpc_client.load(MODEL)


def test_a_broken_version_is_named_and_the_others_serve_on(grpc_client: Client, gateway_server: RunningServer) -> None:
    template = gateway_server.repository / MODEL / "1" / "versions" / str(SILENT_END) / "chat_template.jinja"
    try:
        template.write_text("{% if %}")
        grpc_client.load(MODEL)
        assert grpc_client.generate(MODEL, "a b", max_tokens=9).text == "a b"
        with pytest.raises(Rejected, match=f"version {SILENT_END} cannot be served: the chat template does not parse"):
            grpc_client.generate(MODEL, "a b", version=SILENT_END)
    finally:
        template.unlink()
        grpc_client.load(MODEL)
    assert grpc_client.generate(MODEL, "a b", max_tokens=9, version=SILENT_END).text == "a b"


def test_a_gateway_of_broken_versions_does_not_load_and_says_why(
    grpc_client: Client, gateway_server: RunningServer
) -> None:
    folders = sorted((gateway_server.repository / MODEL / "1" / "versions").iterdir())
    templates = [folder / "chat_template.jinja" for folder in folders]
    try:
        for template in templates:
            template.write_text("{% if %}")
        with pytest.raises(Rejected, match="version 1 cannot be served: the chat template .*; version 2 cannot"):
            grpc_client.load(MODEL)
    finally:
        for template in templates:
            template.unlink()
        grpc_client.load(MODEL)
