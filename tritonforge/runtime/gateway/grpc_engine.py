"""Engine calls over the server's own gRPC endpoint.

Not over Triton's request interface for models (BLS): in 2.51 its iterator of responses takes a lock before it waits for
the interpreter, while the thread that brings responses holds another one. With several calls at a time the model's
process sooner or later stops for ever: seen after 400 to 1,200 streams at 32 in parallel. gRPC has no such lock, hands
over responses as they come, and tells the engine when this process dies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

from ..tensors import Array
from . import dialect
from .engine import Ended, EngineCall, Failure, Mailbox

_CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),  # the way to this machine itself leads over no proxy
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
)
_DATATYPES = {"int32": "INT32", "uint64": "UINT64", "float32": "FP32", "bool": "BOOL"}
_DTYPES = {datatype: np.dtype(name) for name, datatype in _DATATYPES.items()}
_log = logging.getLogger(__name__)


class GrpcEngine:
    """Runs engine calls on other models of the same server.

    Args:
        address: ``host:port`` of the server.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._stub: Any = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, call: EngineCall, mailbox: Mailbox) -> None:
        """Send the call; its events come to the mailbox until `Ended`."""
        task = asyncio.ensure_future(self._run(call, mailbox))
        # The loop keeps only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def send_stop(self, stop: EngineCall) -> None:
        """Send a call that stops another one, and wait for its answer."""
        mailbox = Mailbox()
        await self._run(stop, mailbox)
        for event in await mailbox.read():
            if isinstance(event, Failure):
                _log.info("engine model %s on stopping %s: %s", stop.engine_model, stop.request_id, event.reason)

    async def _run(self, call: EngineCall, mailbox: Mailbox) -> None:
        try:
            async for answer in self._connected().ModelStreamInfer(_only(_message(call))):
                if answer.error_message:
                    mailbox.put(Failure(answer.error_message))
                    continue
                tokens = dialect.read_tokens(_outputs(answer.infer_response))
                if tokens is not None:
                    mailbox.put(tokens)
        except grpc.RpcError as error:
            mailbox.put(Failure(self._reason(error)))
        finally:
            mailbox.put(Ended())

    def _connected(self) -> Any:
        if self._stub is None:  # a channel belongs to the running event loop, which is not there before a request is
            channel = grpc.aio.insecure_channel(self._address, options=_CHANNEL_OPTIONS)
            self._stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        return self._stub

    def _reason(self, error: Any) -> str:
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            return f"the server's gRPC endpoint {self._address} does not answer: {error.details()}"
        return str(error.details())


async def _only(message: Any) -> AsyncIterator[Any]:
    """A stream of one request: closed behind it, so that the server ends the stream after the last response."""
    yield message


def _message(call: EngineCall) -> Any:
    message = service_pb2.ModelInferRequest(
        model_name=call.engine_model, model_version=str(call.engine_version), id=call.request_id
    )
    for name, array in call.inputs.items():
        message.inputs.add(name=name, datatype=_DATATYPES[array.dtype.name], shape=array.shape)
        message.raw_input_contents.append(array.tobytes())
    for name in call.outputs:
        message.outputs.add(name=name)
    return message


def _outputs(response: Any) -> dict[str, Array]:
    tensors = zip(response.outputs, response.raw_output_contents, strict=False)
    return {
        tensor.name: np.frombuffer(raw, dtype=_DTYPES[tensor.datatype]).reshape(tensor.shape) for tensor, raw in tensors
    }
