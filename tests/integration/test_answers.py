"""Answers of the real server: whole and streamed, over both protocols, from both models."""

from __future__ import annotations

import pytest

from tritonforge.client import Client

pytestmark = pytest.mark.triton
MODELS = ["tale", "glm"]


@pytest.mark.parametrize("model", MODELS)
def test_streamed_pieces_make_the_whole_answer(client: Client, model: str) -> None:
    whole = client.generate(model, "once upon a time", max_tokens=24)

    pieces = list(client.stream(model, "once upon a time", max_tokens=24))

    assert "".join(piece.text for piece in pieces) == whole.text
    assert (whole.prompt_tokens or 0) > 0
    last = pieces[-1]
    assert (last.finish_reason, last.prompt_tokens, last.completion_tokens, last.engine_version) == (
        whole.finish_reason,
        whole.prompt_tokens,
        whole.completion_tokens,
        whole.engine_version,
    )
    assert all(piece.finish_reason is None for piece in pieces[:-1])


@pytest.mark.parametrize("model", MODELS)
def test_protocols_give_the_same_answer(served, model: str) -> None:
    texts = []
    for url in (served.server.grpc_url, served.server.http_url):
        with Client(url) as client:
            texts.append(client.generate(model, "the quick brown fox", max_tokens=16).text)

    assert texts[0] == texts[1] != ""


@pytest.mark.parametrize("model", MODELS)
def test_chat_is_rendered_by_the_checkpoint(client: Client, model: str) -> None:
    plain = client.generate(model, "hello", max_tokens=4)
    chat = client.generate(model, messages=[{"role": "user", "content": "hello"}], max_tokens=4)

    assert chat.prompt_tokens is not None
    assert plain.prompt_tokens is not None
    assert chat.prompt_tokens > plain.prompt_tokens  # role tokens and the generation prompt


def test_length_is_the_reason_when_the_tokens_run_out(client: Client) -> None:
    answer = client.generate("tale", "once", max_tokens=5)

    assert (answer.finish_reason, answer.completion_tokens) == ("length", 5)


def test_stop_word_ends_the_answer_and_is_not_part_of_it(client: Client) -> None:
    whole = client.generate("tale", "once upon a time", max_tokens=32).text
    stop = whole[len(whole) // 2 : len(whole) // 2 + 3]

    cut = client.generate("tale", "once upon a time", max_tokens=32, stop_words=[stop])
    streamed = "".join(p.text for p in client.stream("tale", "once upon a time", max_tokens=32, stop_words=[stop]))

    assert cut.text == streamed == whole[: whole.index(stop)]
    assert cut.finish_reason == "stop"


def test_pinned_version_answers_whatever_the_traffic_says(client: Client) -> None:
    versions = {client.generate("tale", "once", max_tokens=2, version=number).engine_version for number in (1, 2)}

    assert versions == {1, 2}


def test_unfused_engine_gives_the_same_greedy_answer(client: Client) -> None:
    texts = [client.generate("tale", "once upon a time", max_tokens=24, version=number).text for number in (1, 3)]

    assert texts[0] == texts[1]


def test_same_seed_gives_the_same_answer_and_another_seed_another(client: Client) -> None:
    def ask(seed: int) -> str:
        options = {"temperature": 1.0, "top_p": 0.95, "random_seed": seed}
        return client.generate("tale", "once upon a time", max_tokens=24, **options).text

    assert ask(7) == ask(7)
    assert len({ask(seed) for seed in range(4)}) > 1


def test_log_probabilities_come_on_request(client: Client) -> None:
    answer = client.generate("tale", "once upon a time", max_tokens=6, return_log_probs=True)

    assert answer.output_log_probs is not None
    assert answer.cum_log_probs is not None
    assert len(answer.output_log_probs) == answer.completion_tokens
    assert answer.cum_log_probs == pytest.approx(sum(answer.output_log_probs), abs=1e-3)
    assert all(value <= 0 for value in answer.output_log_probs)
