"""Carries calls over HTTP, blocking."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TypeVar

import httpx2

from tritonforge.client.deadline import Deadline
from tritonforge.client.http_messages import FIRST_ERROR_STATUS, HttpAnswer, HttpRequest, check
from tritonforge.client.transport import Call, StreamCall
from tritonforge.errors import ClientError, ConnectFailed, StreamBroken, TimedOut, TransportError, UsageBug

# Triton would compress answers when asked to; on the way from a server nearby that only costs time.
HEADERS = {"Accept-Encoding": "identity"}
SHORTEST_TIMEOUT_S = 0.001

ResultT = TypeVar("ResultT")


class HttpTransport:
    """See `Transport`.

    Args:
        base_url: ``http[s]://host:port``.
    """

    def __init__(self, base_url: str) -> None:
        self._server = base_url
        self._http = httpx2.Client(
            base_url=base_url,
            headers=HEADERS,
            trust_env=False,  # which proxy to use is not for a library to read from the environment
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
        )

    def unary(self, call: Call[HttpRequest, HttpAnswer, ResultT], *, deadline: Deadline) -> ResultT:
        """Send a request and read its answer."""
        try:
            with self._response(call.request, deadline) as response:
                body = b"".join(self._pieces(response, deadline))
        except httpx2.TransportError as error:
            raise self._error(error, deadline) from error
        return call.decode(HttpAnswer(response.status_code, body, response.headers))

    def stream(
        self, call: StreamCall[HttpRequest, bytes, ResultT], *, deadline: Deadline
    ) -> Generator[ResultT, None, None]:
        """Send a request and give its results as they come."""
        reader = call.open()
        received = 0
        try:
            # Closing the response closes the connection when the body has not ended: the server then cancels.
            with self._response(call.request, deadline) as response:
                pieces = self._pieces(response, deadline)
                if response.status_code >= FIRST_ERROR_STATUS:
                    check(HttpAnswer(response.status_code, b"".join(pieces)), server=self._server)
                for piece in pieces:
                    for result in reader.feed(piece):
                        received += 1
                        yield result
                yield from reader.end()
        except httpx2.TransportError as error:
            raise self._error(error, deadline, received=received) from error

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    @contextlib.contextmanager
    def _response(self, request: HttpRequest, deadline: Deadline) -> Iterator[httpx2.Response]:
        if self._http.is_closed:
            raise UsageBug("the client is closed")
        sent = self._http.build_request(
            request.method,
            request.path,
            content=request.body,
            headers=dict(request.headers),
            extensions={"timeout": RemainingTime(deadline)},
        )
        with closing(self._http.send(sent, stream=True)) as response, cut_off(response, deadline):
            yield response

    def _pieces(self, response: httpx2.Response, deadline: Deadline) -> Generator[bytes, None, None]:
        for piece in response.iter_bytes():
            yield piece
            if deadline.passed:
                raise TimedOut(server=self._server, after_s=deadline.timeout_s)

    def _error(self, error: httpx2.TransportError, deadline: Deadline, *, received: int = 0) -> ClientError:
        if isinstance(error, httpx2.TimeoutException) or deadline.passed:
            return TimedOut(server=self._server, after_s=deadline.timeout_s)
        if isinstance(error, httpx2.ConnectError):
            hint = "is the server running? `tritonforge serve` starts one; HTTP is usually on port 8000"
            return ConnectFailed(f"no connection: {error}", server=self._server, hint=hint)
        if received > 0:
            return StreamBroken(str(error), server=self._server, chunks_received=received)
        return TransportError(f"connection lost: {error}", server=self._server, hint="look at the server's log")


class RemainingTime(dict[str, float]):
    """The timeouts of a request, asked for as each of its steps begins: connect, write, read.

    Each step gets what is left until the deadline, where plain numbers would give each the whole time.
    """

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def get(self, _key: str, _default: float | None = None) -> float:  # type: ignore[override]  # as dict.get
        """The seconds for any step. A socket takes 0 for "do not wait", hence the least value."""
        return max(self._deadline.remaining_s(), SHORTEST_TIMEOUT_S)


@contextlib.contextmanager
def cut_off(response: httpx2.Response, deadline: Deadline) -> Iterator[None]:
    """End a response at the deadline, whatever it is doing: a read timeout starts anew with every piece of the body.

    Args:
        response: A response whose body is being read.
        deadline: When to end it.
    """
    connection = response.extensions["network_stream"].get_extra_info("socket")

    def cut() -> None:
        with contextlib.suppress(OSError):  # it may just have been closed
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(deadline.remaining_s(), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
