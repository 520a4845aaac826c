"""The chat list: what is accepted, and how the first fault is named."""

from __future__ import annotations

import json

import pytest

from tritonforge.runtime.gateway.messages import parse_messages
from tritonforge.runtime.tensors import RequestRejected

EXPECTED = "a JSON list of at least one object with role and content"


def test_messages_keep_their_keys_and_lose_null_ones() -> None:
    text = json.dumps([{"role": "user", "content": "Hi", "name": "Ann", "tools": None}])
    assert parse_messages(text) == ({"role": "user", "content": "Hi", "name": "Ann"},)


def test_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "Hello, "}, {"type": "text", "text": "world"}]
    assert parse_messages(json.dumps([{"role": "user", "content": parts}]))[0]["content"] == "Hello, world"


def test_a_call_of_a_tool_needs_no_content_and_its_arguments_become_an_object() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    (message,) = parse_messages(json.dumps([{"role": "assistant", "content": None, "tool_calls": [call]}]))
    assert "content" not in message
    assert message["tool_calls"][0]["function"]["arguments"] == {"x": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", f"expected {EXPECTED}"),
        ("[" * 100_000, "messages is nested too deeply; expected a few levels"),
        (f"[{'9' * 5000}]", "messages cannot be read: Exceeds the limit"),
        ("[]", f"messages is an empty list; expected {EXPECTED}"),
        ('{"role": "user"}', f"messages is an object; expected {EXPECTED}"),
        ('["hi"]', "messages[0] is a string; expected an object with role and content"),
        ('[{"content": "a"}]', "messages[0].role is missing; expected a name such as user, assistant or system"),
        ('[{"role": 3, "content": "a"}]', "messages[0].role is a number; expected a name such as user"),
        ('[{"role": "user"}]', "messages[0].content is missing; expected a string"),
        (
            '[{"role": "user", "content": "a"}, {"role": "assistant", "content": 5}]',
            "messages[1].content is a number; expected a string or a list of text parts",
        ),
        (
            '[{"role": "user", "content": [{"type": "image_url"}]}]',
            'messages[0].content[0] is not {"type": "text", "text": …}; only text parts are served',
        ),
        ('[{"role": "assistant", "tool_calls": 5}]', "messages[0].tool_calls is a number; expected a list of objects"),
        (
            json.dumps([{"role": "assistant", "tool_calls": [{}, {"function": {"arguments": "[" * 100_000}}]}]),
            "messages[0].tool_calls[1].function.arguments is nested too deeply",
        ),
        (
            json.dumps([{"role": "assistant", "tool_calls": [{"function": {"arguments": '{"a": "\\ud83d"}'}}]}]),
            "messages[0].tool_calls[0].function.arguments holds half of a surrogate pair",
        ),
        ('[{"role": "user", "content": "\\ud83d"}]', "messages holds half of a surrogate pair; expected valid Unicode"),
    ],
)
def test_a_fault_is_named_by_its_place(text: str, message: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        parse_messages(text)
    assert message in str(caught.value)
