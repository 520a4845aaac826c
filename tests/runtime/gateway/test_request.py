"""Every input of the text-level contract: what it means, and the one error that a bad value gets."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.runtime.gateway.requests import inputs_of
from tritonforge.runtime.gateway.request import parse_request
from tritonforge.runtime.tensors import Inputs, RequestRejected

CHAT = json.dumps([{"role": "user", "content": "Hi"}])


def test_a_prompt_alone_is_enough() -> None:
    request = parse_request(inputs_of(text_input="Hello"))
    assert (request.text, request.messages, request.max_tokens, request.stream) == ("Hello", None, None, False)


def test_every_field_reaches_the_request() -> None:
    request = parse_request(
        inputs_of(
            text_input="Hi", max_tokens=7, stream=True, temperature=0.5, top_k=4, top_p=0.5, repetition_penalty=2.0,
            presence_penalty=-1.0, frequency_penalty=1.0, random_seed=2**64 - 1, min_length=3, stop_words=["a", "b"],
            bad_words="c", version=2, sticky_key="me", return_log_probs=True, end_id=-1, pad_id=0, beam_width=1,
        )
    )  # fmt: skip
    sampling = request.sampling
    assert (request.max_tokens, request.stream, request.version, request.sticky_key) == (7, True, 2, "me")
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_length) == (0.5, 4, 0.5, 3)
    assert (sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty) == (2.0, -1.0, 1.0)
    assert sampling.random_seed == 2**64 - 1
    assert (request.stop_words, request.bad_words, request.return_log_probs) == (("a", "b"), ("c",), True)
    assert (request.end_id, request.pad_id) == (-1, 0)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_value_may_have_any_shape_of_one_element(shape: tuple[int, ...]) -> None:
    text = np.array(b"Hi", dtype=object).reshape(shape)
    request = parse_request(Inputs({"text_input": text, "max_tokens": np.full(shape, 3, dtype=np.int32)}))
    assert (request.text, request.max_tokens) == ("Hi", 3)


def test_the_empty_words_of_nvidias_clients_are_no_words() -> None:
    request = parse_request(inputs_of(text_input="Hi", stop_words=[""], bad_words=[""], top_k=0, top_p=0.0))
    assert (request.stop_words, request.bad_words, request.sampling.top_k, request.sampling.top_p) == (
        (),
        (),
        None,
        None,
    )


def test_an_empty_prompt_beside_messages_is_no_prompt() -> None:
    request = parse_request(inputs_of(text_input="", messages=CHAT))
    assert request.text is None
    assert request.messages == CHAT


def test_empty_tensors_are_absent() -> None:
    empty = np.zeros((1, 0), dtype=object)
    request = parse_request(Inputs({**inputs_of(text_input="Hi").arrays, "stop_words": empty, "sticky_key": empty}))
    assert (request.stop_words, request.sticky_key) == ((), None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "text_input and messages are both missing; expected one of them"),
        ({"text_input": ""}, "text_input is empty; expected a prompt of at least one character"),
        ({"messages": ""}, "messages is empty; expected a prompt of at least one character"),
        ({"text_input": "Hi", "messages": CHAT}, "text_input and messages are both given; expected one of them"),
        ({"text_input": b"ab\xff"}, "text_input is not valid UTF-8: byte 0xff at position 2"),
        ({"text_input": ["a", "b"]}, "text_input has shape [1, 2]; expected one string, one element"),
        ({"text_input": np.array([[1]])}, "text_input has type int64; expected one string"),
        (
            {"text_input": np.array([[b"a"], [b"b"]], dtype=object)},
            "text_input has shape [2, 1], a batch of 2; expected one request at a time",
        ),
        ({"max_tokens": 0}, "max_tokens is 0; expected an integer from 1 to 2147483647"),
        ({"max_tokens": -5}, "max_tokens is -5; expected an integer from 1 to 2147483647"),
        ({"max_tokens": np.array([[1.5]])}, "max_tokens has type float64; expected an integer"),
        ({"max_tokens": [1, 2]}, "max_tokens has shape [1, 2]; expected an integer, one element"),
        ({"stream": np.array([[1]])}, "stream has type int64; expected true or false"),
        ({"temperature": -0.5}, "temperature is -0.5; expected a finite number of at least 0"),
        ({"temperature": float("nan")}, "temperature is nan; expected a finite number of at least 0"),
        ({"temperature": float("inf")}, "temperature is inf; expected a finite number of at least 0"),
        ({"top_k": -1}, "top_k is -1; expected an integer of at least 0"),
        ({"top_p": 1.5}, "top_p is 1.5; expected a finite number from 0 to 1"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0; expected a finite number above 0"),
        ({"presence_penalty": float("inf")}, "presence_penalty is inf; expected a finite number"),
        ({"frequency_penalty": float("nan")}, "frequency_penalty is nan; expected a finite number"),
        ({"min_length": -1}, "min_length is -1; expected an integer of at least 0"),
        ({"version": 0}, "version is 0; expected an integer of at least 1"),
        ({"beam_width": 4}, "beam_width is 4; expected 1, beam search is not served"),
        ({"end_id": -2}, "end_id is -2; expected an integer of at least -1"),
        ({"stop_words": [f"w{i}" for i in range(300)]}, "stop_words has 300 words; expected at most 256"),
        ({"bad_words": "x" * 600}, "bad_words has a word of 600 characters; expected at most 512"),
        ({"sticky_key": b"\xc3("}, "sticky_key is not valid UTF-8: byte 0xc3 at position 0"),
    ],
)
def test_a_bad_value_is_refused_by_one_sentence(fields: dict[str, object], message: str) -> None:
    prompt = {} if not fields or {"text_input", "messages"} & set(fields) else {"text_input": "Hi"}
    with pytest.raises(RequestRejected) as caught:
        parse_request(inputs_of(**prompt, **fields))
    assert str(caught.value) == message
