"""Engine calls over the server's own gRPC endpoint.

Not over Triton's request interface for models (BLS): in 2.51 its iterator of responses takes a lock before it waits for
the interpreter, while the thread that brings responses holds another one. With several calls at a time the model's
process sooner or later stops for ever: seen after 400 to 1,200 streams at 32 in parallel. gRPC has no such lock, hands
over responses as they come, and tells the engine when this process dies.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import AsyncIterator
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

from ..tensors import Array
from .dialects import DIALECTS
from .engine import EngineCall, Failure, Mailbox, new_request_id
from .errors import is_dead
from .running_calls import RunningCalls

_CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),  # the way to this machine itself leads over no proxy
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
)
_DATATYPES = {"int32": "INT32", "uint32": "UINT32", "uint64": "UINT64", "float32": "FP32", "bool": "BOOL"}
_BYTES = "BYTES"
_DTYPES = {datatype: np.dtype(name) for name, datatype in _DATATYPES.items()}
_SILENCE_S = 5.0
_LOOK_EVERY_S = 1.0
_STOP_DEADLINE_S = 5.0
_log = logging.getLogger(__name__)


class GrpcEngine:
    """Runs engine calls on other models of the same server.

    Args:
        address: ``host:port`` of the server.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._stub: Any = None
        self._running = RunningCalls()
        self._look: asyncio.Task[None] | None = None

    def start(self, call: EngineCall, mailbox: Mailbox) -> None:
        """Send the call; its events come to the mailbox until `Ended`."""
        self._begin(call, mailbox)
        if self._look is None or self._look.done():
            self._look = asyncio.ensure_future(self._look_after_silent_engines())

    async def send_stop(self, stop: EngineCall) -> None:
        """Send a call that stops another one, and wait for its answer, but not for ever."""
        mailbox = Mailbox()
        done, _ = await asyncio.wait({self._begin(stop, mailbox)}, timeout=_STOP_DEADLINE_S)
        for event in await mailbox.read() if done else ():
            if isinstance(event, Failure):
                _log.info("engine model %s on stopping %s: %s", stop.engine_model, stop.request_id, event.reason)

    def hang_up(self, call: EngineCall) -> None:
        """Cancel the call's stream: the server tells the engine's model, and the call's events end."""
        self._running.cancel(call)

    def _begin(self, call: EngineCall, mailbox: Mailbox) -> asyncio.Task[None]:
        task = asyncio.ensure_future(self._run(call, mailbox))
        self._running.add(call, mailbox, task)
        return task

    async def _run(self, call: EngineCall, mailbox: Mailbox) -> None:
        read = DIALECTS[call.dialect].reader()
        try:
            async for answer in self._connected().ModelStreamInfer(_only(_message(call))):
                self._running.heard_of(call.engine_model)
                if answer.error_message:
                    self._fail(call, mailbox, answer.error_message)
                    continue
                event = read(_outputs(answer.infer_response))
                if event is not None:
                    mailbox.put(event)
        except grpc.RpcError as error:
            self._fail(call, mailbox, self._reason(error))
        except Exception as error:  # noqa: BLE001 (top of a task: its client must never hang)
            _log.exception("a call of engine model %s failed", call.engine_model)
            self._fail(call, mailbox, f"{type(error).__name__}: {error}")

    def _fail(self, call: EngineCall, mailbox: Mailbox, reason: str) -> None:
        mailbox.put(Failure(reason))
        if is_dead(reason):
            self._running.fail_all(call.engine_model, reason)

    async def _look_after_silent_engines(self) -> None:
        """Find engines whose process has ended; Triton says so only to new requests, and calls such a model ready."""
        probes: dict[str, asyncio.Task[None]] = {}
        while self._running:
            await asyncio.sleep(_LOOK_EVERY_S)
            for call in self._running.silent(_SILENCE_S):
                before = probes.get(call.engine_model)
                if before is None or before.done():  # an engine that is too busy to answer gets one at a time
                    probe = DIALECTS[call.dialect].probe_call(call, request_id=new_request_id())
                    probes[call.engine_model] = self._begin(probe, Mailbox())

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
        is_text = array.dtype == np.object_
        datatype = _BYTES if is_text else _DATATYPES[array.dtype.name]
        message.inputs.add(name=name, datatype=datatype, shape=array.shape)
        message.raw_input_contents.append(_packed(array) if is_text else array.tobytes())
    for name in call.outputs:
        message.outputs.add(name=name)
    return message


def _outputs(response: Any) -> dict[str, Array]:
    tensors = zip(response.outputs, response.raw_output_contents, strict=False)
    return {tensor.name: _array(tensor.datatype, raw).reshape(tensor.shape) for tensor, raw in tensors}


def _packed(array: Array) -> bytes:
    """Strings as the protocol has them: the length of each in four bytes, then its bytes."""
    return b"".join(struct.pack("<I", len(value)) + value for value in array.ravel())


def _array(datatype: str, raw: bytes) -> Array:
    if datatype != _BYTES:
        return np.frombuffer(raw, dtype=_DTYPES[datatype])
    values, place = [], 0
    while place < len(raw):
        (length,) = struct.unpack_from("<I", raw, place)
        values.append(raw[place + 4 : place + 4 + length])
        place += 4 + length
    return np.array(values, dtype=np.object_)
