"""Carries calls over one gRPC channel, blocking."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any, TypeVar

import grpc
from tritonclient.grpc import service_pb2_grpc

from tritonforge.client.deadline import Deadline
from tritonforge.client.grpc_messages import GrpcRequest
from tritonforge.client.grpc_readers import error_of, is_final
from tritonforge.client.transport import Call, StreamCall
from tritonforge.errors import ClientError, UsageBug

CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # Which proxy to use is not for a library to read from the environment.
    ("grpc.enable_http_proxy", 0),
    # A server that is restarted is found again within about a second; the default backs off for up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)

ResultT = TypeVar("ResultT")


class GrpcTransport:
    """See `Transport`.

    Args:
        target: ``host:port``.
    """

    def __init__(self, target: str) -> None:
        self._server = target
        self._channel = grpc.insecure_channel(target, options=CHANNEL_OPTIONS)
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self._closed = False

    def unary(self, call: Call[GrpcRequest, Any, ResultT], *, deadline: Deadline) -> ResultT:
        """Send a request and read its answer."""
        method = self._method(call.request)
        try:
            answer = method(call.request.message, timeout=deadline.remaining_s())
        except grpc.RpcError as error:
            raise self._error(error, deadline) from error
        return call.decode(answer)

    def stream(
        self, call: StreamCall[GrpcRequest, Any, ResultT], *, deadline: Deadline
    ) -> Generator[ResultT, None, None]:
        """Send one request on a stream of its own and give its results as they come."""
        reader = call.open()
        received = 0
        ending = False
        # The stream is closed on our side after the one request, so the server ends it after the last response.
        # Never with the metadata `triton_grpc_error`, which would give errors a status: with it Triton 2.51 ends in a
        # segmentation fault once it has refused some tens of requests.
        running = self._method(call.request)(iter((call.request.message,)), timeout=deadline.remaining_s())
        try:
            for answer in running:
                ending = is_final(answer)
                for result in reader.feed(answer):
                    received += 1
                    yield result
            yield from reader.end()
        except grpc.RpcError as error:
            raise self._error(error, deadline, received=received) from error
        finally:
            _leave(running, ending=ending)

    def close(self) -> None:
        """Close the channel."""
        self._closed = True
        self._channel.close()

    def _method(self, request: GrpcRequest) -> Any:
        if self._closed:
            raise UsageBug("the client is closed")
        return getattr(self._stub, request.method)

    def _error(self, error: Any, deadline: Deadline, *, received: int = 0) -> ClientError:
        return error_of(
            error.code().name, error.details() or "", server=self._server, after_s=deadline.timeout_s, received=received
        )


def _leave(running: Any, *, ending: bool) -> None:
    """Tell the server that nobody reads any more; or, behind the last response, read the end of the stream.

    A stream that is cancelled as it ends stays in Triton 2.51, and its model cannot be unloaded any more.
    """
    if not ending:
        running.cancel()
        return
    with contextlib.suppress(grpc.RpcError):  # the call's deadline has passed, at the latest
        for _ in running:
            pass
