"""What is sent and what comes back over HTTP, and the errors that answers stand for. Pure."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tritonforge.client.rejections import rejection
from tritonforge.errors import ClientError

FIRST_ERROR_STATUS = 400
SHOWN_BYTES = 80
OTHER_SERVER = "is this a Triton server?"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request.

    Args:
        method: ``GET`` or ``POST``.
        path: Path on the server, quoted.
        body: Content; empty for none.
        headers: Headers beyond the usual.
    """

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer that has arrived whole.

    Args:
        status: Status code.
        body: Content.
        headers: Headers with lower-case names.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def post(path: str, content: object) -> HttpRequest:
    """A request with a JSON body."""
    return HttpRequest("POST", path, json.dumps(content).encode(), {"Content-Type": "application/json"})


def check(answer: HttpAnswer, *, server: str) -> None:
    """Raise the error that an answer stands for, if it stands for one."""
    if answer.status < FIRST_ERROR_STATUS:
        return
    text = answer.body.decode("utf-8", errors="replace").strip()
    # The error of a stream that failed before its first response is an event.
    text = text.removeprefix("data:").strip()
    try:
        content = json.loads(text)
        detail = str(content["error"]) if isinstance(content, dict) and "error" in content else text
    except ValueError:
        detail = text
    raise rejection(detail or f"HTTP status {answer.status}", server=server, status=str(answer.status))


def parse(body: bytes, *, server: str) -> Any:
    """The JSON value of a body. Raises `ClientError` when it is not JSON."""
    try:
        return json.loads(body)
    except ValueError as error:
        raise ClientError(f"{server}: the answer is not JSON: {_start(body)!r}", hint=OTHER_SERVER) from error


def parse_object(body: bytes, *, server: str) -> Mapping[str, object]:
    """The JSON object of a body. Raises `ClientError` when it is not one."""
    content = parse(body, server=server)
    if not isinstance(content, dict):
        raise ClientError(f"{server}: the answer is not a JSON object: {_start(body)!r}", hint=OTHER_SERVER)
    return content


@contextlib.contextmanager
def expecting(path: str, body: bytes, *, server: str) -> Iterator[None]:
    """Turn what goes wrong while a JSON answer of another shape is read into a `ClientError`.

    Args:
        path: The path that was asked, for the message.
        body: The answer.
        server: The address that was asked.
    """
    try:
        yield
    except KeyError as error:
        raise ClientError(f"{server}: the answer of {path} has no {error}", hint=OTHER_SERVER) from error
    except (TypeError, ValueError, AttributeError) as error:
        message = f"{server}: the answer of {path} has an unexpected form: {_start(body)!r}"
        raise ClientError(message, hint=OTHER_SERVER) from error


def _start(body: bytes) -> str:
    return body[:SHOWN_BYTES].decode("utf-8", errors="replace")
