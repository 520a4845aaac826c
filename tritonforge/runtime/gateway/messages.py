"""The chat list of the `messages` input: JSON text to checked messages. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..tensors import RequestRejected

Message = Mapping[str, Any]
"""One message as a chat template takes it: plain JSON types, at least `role`; `content` is a string when present."""

_EXPECTED = "a JSON list of at least one object with role and content"


def parse_messages(text: str) -> tuple[Message, ...]:
    """Messages from a JSON list of `{"role": …, "content": …}`.

    Content may be a string, or a list of `{"type": "text", "text": …}` parts, which are joined. It may be left out or
    null only beside `tool_calls`. Arguments of tool calls that are JSON text become objects, because templates expect
    objects.

    Raises:
        RequestRejected: The text is not JSON, or a message is not of that form; the error names the message by its
            number from 0.
    """
    try:
        value = _read_json("messages", text)
    except json.JSONDecodeError as error:
        raise RequestRejected(f"messages is not JSON ({error}); expected {_EXPECTED}") from error
    if not isinstance(value, list) or not value:
        found = "an empty list" if value == [] else _kind(value)
        raise RequestRejected(f"messages is {found}; expected {_EXPECTED}")
    return tuple(_message(f"messages[{index}]", item) for index, item in enumerate(value))


def _message(place: str, value: object) -> Message:
    if not isinstance(value, dict):
        raise RequestRejected(f"{place} is {_kind(value)}; expected an object with role and content")
    role = value.get("role")
    if not isinstance(role, str) or not role:
        found = "missing" if "role" not in value else "empty" if role == "" else _kind(role)
        raise RequestRejected(f"{place}.role is {found}; expected a name such as user, assistant or system")
    # A template asks `is defined` or `is not none`; a key whose value is null is therefore left out.
    message = {key: item for key, item in value.items() if item is not None}
    if "content" in message:
        message["content"] = _content(f"{place}.content", message["content"])
    elif "tool_calls" not in message:
        raise RequestRejected(f"{place}.content is missing; expected a string")
    if "tool_calls" in message:
        message["tool_calls"] = _tool_calls(f"{place}.tool_calls", message["tool_calls"])
    return message


def _content(place: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise RequestRejected(f"{place} is {_kind(value)}; expected a string or a list of text parts")
    texts = []
    for index, part in enumerate(value):
        text = part.get("text") if isinstance(part, dict) and part.get("type", "text") == "text" else None
        if not isinstance(text, str):
            raise RequestRejected(f'{place}[{index}] is not {{"type": "text", "text": …}}; only text parts are served')
        texts.append(text)
    return "".join(texts)


def _tool_calls(place: str, value: object) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(call, dict) for call in value):
        raise RequestRejected(f"{place} is {_kind(value)}; expected a list of objects")
    return [_tool_call(f"{place}[{index}]", call) for index, call in enumerate(value)]


def _tool_call(place: str, call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(arguments, str):
        return call
    try:
        parsed = _read_json(f"{place}.function.arguments", arguments)
    except json.JSONDecodeError:
        return call  # the template gets the text as it is
    return {**call, "function": {**function, "arguments": parsed}}


def _read_json(place: str, text: str) -> Any:
    """Value of a JSON text. Raises RequestRejected, or JSONDecodeError when it is no JSON at all."""
    try:
        value = json.loads(text)
        # JSON can spell half of a surrogate pair ("\\ud83d"), which no tokenizer can encode.
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise RequestRejected(f"{place} is nested too deeply; expected a few levels") from error
    except UnicodeEncodeError as error:
        raise RequestRejected(f"{place} holds half of a surrogate pair; expected valid Unicode text") from error
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # a number of more digits than Python reads
        raise RequestRejected(f"{place} cannot be read: {error}") from error
    return value


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null" if value is None else type(value).__name__)
