"""The text level against a real server, over both protocols, with and without a batch dimension."""

import json
import time

import pytest

from tests.support.processes import wait_until
from tritonforge.client import Client
from tritonforge.errors import InvalidRequest, ModelNotFound, StreamBroken, TimedOut, UsageBug

pytestmark = pytest.mark.triton
MODELS = pytest.mark.parametrize("model", ["talker", "batched"])


@MODELS
def test_a_whole_answer_comes_with_its_counts_and_times(client: Client, model: str):
    answer = client.generate(model, "one two three", max_tokens=2)
    assert (answer.text, answer.finish_reason, answer.engine_version) == ("one two", "length", 3)
    assert (answer.prompt_tokens, answer.completion_tokens) == (7, 2)
    assert 0 < answer.ttft_ms <= answer.total_ms


@MODELS
def test_a_streamed_answer_ends_with_its_finish_reason(client: Client, model: str):
    chunks = list(client.stream(model, "één twee"))
    assert [chunk.text for chunk in chunks] == ["één ", "twee "]
    assert [chunk.index for chunk in chunks] == [0, 1]
    assert [chunk.finish_reason for chunk in chunks] == [None, "stop"]
    assert [chunk.completion_tokens for chunk in chunks] == [None, 2]


@MODELS
def test_every_kind_of_field_arrives_as_it_was_given(client: Client, model: str):
    given = {
        "max_tokens": 5,
        "temperature": 0.5,
        "top_k": 3,
        "random_seed": 2**64 - 1,
        "stop_words": ["\n\n", "ende"],
        "version": 2,
        "sticky_key": "user-7",
    }
    arrived = json.loads(client.generate(model, "fields", **given).text)
    assert arrived.pop("text_input") == ["fields"]
    assert arrived.pop("stream") == [False]
    assert arrived == {name: value if isinstance(value, list) else [value] for name, value in given.items()}


def test_messages_travel_as_json(client: Client):
    messages = [{"role": "system", "content": "Be “brief”"}, {"role": "user", "content": "Hi\n"}]
    assert [chunk.text for chunk in client.stream("talker", messages=messages)] == ["Be “brief” ", "Hi\n "]


def test_text_with_line_ends_and_quotes_arrives_whole(client: Client):
    assert client.generate("talker", 'a\u2028b "quoted" \\back\\').text == 'a b "quoted" \\back\\'


@pytest.mark.parametrize("way", ["generate", "stream"])
def test_a_refusal_keeps_the_models_own_words(client: Client, way: str):
    with pytest.raises(InvalidRequest, match="max_tokens is 0; expected at least 1"):
        list(client.stream("talker", "refuse")) if way == "stream" else client.generate("talker", "refuse")


def test_a_stream_that_breaks_says_after_how_many_responses(client: Client):
    received = []
    with pytest.raises(StreamBroken, match="stream broken after 2 responses: the engine fell over") as caught:
        received.extend(chunk.text for chunk in client.stream("talker", "a b break c"))
    assert caught.value.chunks_received == 2


def test_an_unknown_model_points_at_the_nearest(client: Client):
    with pytest.raises(ModelNotFound, match="'tolker'") as caught:
        client.generate("tolker", "Hi")
    assert caught.value.hint == "did you mean 'talker'?"


def test_a_model_for_tensors_is_not_asked_for_text(client: Client):
    with pytest.raises(InvalidRequest, match="model 'echo' takes no text_input"):
        client.generate("echo", "Hi")


def test_leaving_a_stream_early_cancels_it_on_the_server(client: Client):
    before = int(client.generate("talker", "count cancelled").text)
    for chunk in client.stream("talker", "wait " * 400):
        assert chunk.text == "wait "
        break
    wait_until(lambda: int(client.generate("talker", "count cancelled").text) > before)


def test_a_deadline_ends_the_stream_here_and_on_the_server(client: Client):
    before = int(client.generate("talker", "count cancelled").text)
    start_s = time.monotonic()
    with pytest.raises(TimedOut, match=r"no answer within 0\.5 s"):
        list(client.stream("talker", "wait " * 400, timeout_s=0.5))
    assert time.monotonic() - start_s < 5
    wait_until(lambda: int(client.generate("talker", "count cancelled").text) > before)


def test_a_closed_client_says_so(client: Client):
    client.generate("talker", "Hi")
    client.close()
    with pytest.raises(UsageBug, match="the client is closed"):
        client.generate("talker", "Hi")
    with pytest.raises(UsageBug, match="the client is closed"):
        client.models()
