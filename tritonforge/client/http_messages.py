"""What is sent and what comes back over HTTP, and the errors that answers stand for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tritonforge.client.rejections import rejection
from tritonforge.errors import ClientError

FIRST_ERROR_STATUS = 400


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
    """The JSON value of a body. Raises `ClientError` when it is none."""
    try:
        return json.loads(body)
    except ValueError as error:
        shown = body[:80].decode("utf-8", errors="replace")
        raise ClientError(f"{server}: the answer is not JSON: {shown!r}", hint="is this a Triton server?") from error
