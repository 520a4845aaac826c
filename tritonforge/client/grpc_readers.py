"""Reads the responses of a gRPC stream, and the errors that gRPC statuses stand for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from tritonforge.client.rejections import rejection
from tritonforge.errors import Cancelled, ClientError, ConnectFailed, StreamBroken, TimedOut, TransportError

FINAL = "triton_final_response"
NO_CONNECTION = ("failed to connect", "Connection refused", "DNS resolution failed", "errors resolving")
LOST_CONNECTION = ("Socket closed", "Connection reset", "Broken pipe", "recvmsg", "GOAWAY", "Transport closed")

ResultT = TypeVar("ResultT")


def is_final(piece: Any) -> bool:
    """Whether a ModelStreamInferResponse is the last of its request: marked so, or an error."""
    parameters = piece.infer_response.parameters
    return bool(piece.error_message) or (FINAL in parameters and bool(parameters[FINAL].bool_param))


class GrpcStreamReader(Generic[ResultT]):
    """Reads the responses to one request of a ModelStreamInfer stream.

    Args:
        read: Makes a result of a response with outputs and its index.
        server: The server's address, for error messages.
        check: Called when the stream has ended as it should; raises when the whole of it is no answer.
    """

    def __init__(
        self, read: Callable[[Any, int], ResultT], *, server: str, check: Callable[[], None] = lambda: None
    ) -> None:
        self._read = read
        self._check = check
        self._server = server
        self._received = 0
        self._finished = False

    def feed(self, piece: Any) -> Sequence[ResultT]:
        """The result that a ModelStreamInferResponse carries, if it carries one."""
        if piece.error_message:
            if self._received > 0:
                raise StreamBroken(piece.error_message, server=self._server, chunks_received=self._received)
            raise rejection(piece.error_message, server=self._server, status="")
        response = piece.infer_response
        final = is_final(piece)
        self._finished = self._finished or final
        if final and not response.outputs:
            return []
        result = self._read(response, self._received)
        self._received += 1
        return [result]

    def end(self) -> Sequence[ResultT]:
        """Nothing; raises when the last response has not come."""
        if not self._finished:
            reason = "the server ended the stream before the last response"
            raise StreamBroken(reason, server=self._server, chunks_received=self._received)
        self._check()
        return []


def error_of(code: str, details: str, *, server: str, after_s: float, received: int) -> ClientError:
    """The error that a gRPC status stands for.

    Args:
        code: Name of the status code.
        details: Its text.
        server: The address that was asked.
        after_s: The deadline of the call.
        received: Results that a stream had given before.
    """
    if code == "DEADLINE_EXCEEDED":
        return TimedOut(server=server, after_s=after_s)
    if code == "CANCELLED":
        return Cancelled(details or "the call was cancelled", server=server)
    if received > 0:
        return StreamBroken(details, server=server, chunks_received=received)
    if code == "UNAVAILABLE":
        if any(phrase in details for phrase in NO_CONNECTION):
            hint = "is the server running? `tritonforge serve` starts one; gRPC is usually on port 8001"
            return ConnectFailed("connection refused or host unknown", server=server, hint=hint)
        if any(phrase in details for phrase in LOST_CONNECTION):
            return TransportError(f"connection lost: {details}", server=server, hint="look at the server's log")
    return rejection(details, server=server, status=code)
