"""Carries calls over HTTP, blocking."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TypeVar

import httpx2

from tritonforge.client.http_messages import FIRST_ERROR_STATUS, HttpAnswer, HttpRequest, check
from tritonforge.client.transport import Call, StreamCall
from tritonforge.errors import ClientError, ConnectFailed, StreamBroken, TimedOut, TransportError, UsageBug

# Triton would compress answers when asked to; on the way from a server nearby that only costs time.
HEADERS = {"Accept-Encoding": "identity"}

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

    def unary(self, call: Call[HttpRequest, HttpAnswer, ResultT], *, timeout_s: float) -> ResultT:
        """Send a request and read its answer."""
        request = self._request(call.request, timeout_s)
        deadline_s = time.monotonic() + timeout_s
        try:
            with closing(self._http.send(request, stream=True)) as response:
                body = b"".join(self._pieces(response, deadline_s, timeout_s))
        except httpx2.TransportError as error:
            raise self._error(error, timeout_s) from error
        return call.decode(HttpAnswer(response.status_code, body, response.headers))

    def stream(
        self, call: StreamCall[HttpRequest, bytes, ResultT], *, timeout_s: float
    ) -> Generator[ResultT, None, None]:
        """Send a request and give its results as they come."""
        reader = call.open()
        received = 0
        request = self._request(call.request, timeout_s)
        deadline_s = time.monotonic() + timeout_s
        try:
            # Closing the response closes the connection when the body has not ended: the server then cancels.
            with closing(self._http.send(request, stream=True)) as response, cut_off(response, deadline_s=deadline_s):
                pieces = self._pieces(response, deadline_s, timeout_s)
                if response.status_code >= FIRST_ERROR_STATUS:
                    check(HttpAnswer(response.status_code, b"".join(pieces)), server=self._server)
                for piece in pieces:
                    for result in reader.feed(piece):
                        received += 1
                        yield result
                yield from reader.end()
        except httpx2.TransportError as error:
            if time.monotonic() >= deadline_s:
                raise TimedOut(server=self._server, after_s=timeout_s) from error
            raise self._error(error, timeout_s, received=received) from error

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _request(self, request: HttpRequest, timeout_s: float) -> httpx2.Request:
        if self._http.is_closed:
            raise UsageBug("the client is closed")
        return self._http.build_request(
            request.method, request.path, content=request.body, headers=dict(request.headers), timeout=timeout_s
        )

    def _pieces(self, response: httpx2.Response, deadline_s: float, timeout_s: float) -> Generator[bytes, None, None]:
        for piece in response.iter_bytes():
            yield piece
            if time.monotonic() > deadline_s:
                raise TimedOut(server=self._server, after_s=timeout_s)

    def _error(self, error: httpx2.TransportError, timeout_s: float, *, received: int = 0) -> ClientError:
        if isinstance(error, httpx2.TimeoutException):
            return TimedOut(server=self._server, after_s=timeout_s)
        if isinstance(error, httpx2.ConnectError):
            hint = "is the server running? `tritonforge serve` starts one; HTTP is usually on port 8000"
            return ConnectFailed(f"no connection: {error}", server=self._server, hint=hint)
        if received > 0:
            return StreamBroken(str(error), server=self._server, chunks_received=received)
        return TransportError(f"connection lost: {error}", server=self._server, hint="look at the server's log")


@contextlib.contextmanager
def cut_off(response: httpx2.Response, *, deadline_s: float) -> Iterator[None]:
    """End a response at the deadline, whatever it is doing: a read timeout starts anew with every piece.

    Args:
        response: A response whose body is being read.
        deadline_s: When, by `time.monotonic`.
    """
    connection = response.extensions["network_stream"].get_extra_info("socket")

    def cut() -> None:
        with contextlib.suppress(OSError):  # it may just have been closed
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline_s - time.monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
