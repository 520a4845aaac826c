"""Limits that need the tokenised prompt."""

from __future__ import annotations

import json

import pytest

from tests.runtime.gateway.requests import inputs_of
from tests.runtime.gateway.versions import version
from tritonforge.runtime.gateway.prompt import build_prompt
from tritonforge.runtime.gateway.request import parse_request
from tritonforge.runtime.tensors import RequestRejected


def test_a_chat_is_rendered_and_a_text_is_not() -> None:
    chat = build_prompt(parse_request(inputs_of(messages=json.dumps([{"role": "user", "content": "a"}]))), version())
    text = build_prompt(parse_request(inputs_of(text_input="a")), version())
    assert (chat.token_ids, chat.is_chat) == ((91, 97, 93), True)
    assert (text.token_ids, text.is_chat) == ((97,), False)


@pytest.mark.parametrize(("length", "tokens"), [(1, 30), (10, 30), (15, 25), (20, 20)])
def test_the_default_of_max_tokens_shrinks_to_the_room_behind_the_prompt(length: int, tokens: int) -> None:
    assert build_prompt(parse_request(inputs_of(text_input="a" * length)), version()).max_tokens == tokens


def test_max_tokens_may_fill_the_sequence() -> None:
    assert build_prompt(parse_request(inputs_of(text_input="a", max_tokens=39)), version()).max_tokens == 39


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"text_input": "a" * 21},
            "text_input has 21 bytes; no 20 tokens (max_input_len) hold that many",
        ),
        (
            {"messages": json.dumps([{"role": "user", "content": "a" * 19}])},
            "messages has 21 tokens; expected at most 20 (max_input_len)",
        ),
        (
            {"messages": json.dumps([{"role": "r" * 66_000, "content": "a"}])},
            "messages has 66030 bytes; no 20 tokens (max_input_len) hold that many",
        ),
        (
            {"messages": "[" * 70_000},
            "messages has 70000 bytes; no 20 tokens (max_input_len) hold that many",
        ),
        (
            {"messages": json.dumps([{"role": "user", "content": "a" * 21}])},
            "messages has 21 bytes; no 20 tokens (max_input_len) hold that many",
        ),
        (
            {"messages": json.dumps([{"role": "user", "content": ""}] * 21)},
            "messages has 21 messages; expected at most 20 (max_input_len)",
        ),
        (
            {"text_input": "a", "max_tokens": 40},
            "max_tokens is 40; expected at most 39, what a prompt of 1 leaves of 40 (max_seq_len)",
        ),
        (
            {"text_input": "a", "max_tokens": 3, "min_length": 4},
            "min_length is 4; expected at most max_tokens, which is 3",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_limit(fields: dict[str, object], message: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        build_prompt(parse_request(inputs_of(**fields)), version())
    assert str(caught.value) == message


def test_a_prompt_that_fills_the_sequence_leaves_no_room() -> None:
    full = version(max_input_len=40)
    with pytest.raises(RequestRejected, match=r"the prompt has 40 tokens and leaves no room .* less than 40"):
        build_prompt(parse_request(inputs_of(text_input="a" * 40)), full)


def test_a_token_that_the_engine_does_not_know_is_refused() -> None:
    with pytest.raises(RequestRejected, match="text_input has token id 122; the engine knows 100"):
        build_prompt(parse_request(inputs_of(text_input="z")), version(vocab_size=100))
