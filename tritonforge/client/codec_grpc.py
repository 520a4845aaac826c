"""Requests, answers and errors of the KServe v2 protocol over gRPC. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from google.protobuf.message import Message
from tritonclient.grpc import model_config_pb2, service_pb2

from tritonforge.client.rejections import rejection
from tritonforge.client.tensors import BYTES, DTYPES, WireTensor, from_values, from_wire, plain_values, to_wire
from tritonforge.client.text import TextField, chunk_of, text_fields
from tritonforge.client.transport import Call, StreamCall
from tritonforge.client.types import (
    Chunk,
    GenerateRequest,
    InferRequest,
    InferResult,
    ModelConfig,
    ModelInfo,
    ModelStatistics,
    ServerInfo,
    Tensor,
    TensorInfo,
)
from tritonforge.errors import Cancelled, ClientError, ConnectFailed, StreamBroken, TimedOut, TransportError

FINAL = "triton_final_response"
NO_CONNECTION = ("failed to connect", "Connection refused", "DNS resolution failed", "errors resolving")
LOST_CONNECTION = ("Socket closed", "Connection reset", "Broken pipe", "recvmsg", "GOAWAY", "Transport closed")
NANOSECONDS_PER_S = 1e9
# Where the elements of a tensor are when they did not come as raw bytes; Triton always sends raw bytes.
CONTENTS = (
    {
        "BOOL": "bool_contents",
        "INT64": "int64_contents",
        "UINT64": "uint64_contents",
        "FP32": "fp32_contents",
        "FP64": "fp64_contents",
        BYTES: "bytes_contents",
    }
    | dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents")
    | dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents")
)

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class GrpcRequest:
    """A request.

    Args:
        method: Method of the GRPCInferenceService.
        message: Its request message.
    """

    method: str
    message: Message


class GrpcCodec:
    """What can be asked of a server over gRPC; see `Codec`.

    Args:
        server: The server's address, for error messages.
    """

    def __init__(self, server: str) -> None:
        self._server = server

    def live(self) -> Call[GrpcRequest, Any, bool]:
        """Is the server up?"""
        return Call(GrpcRequest("ServerLive", service_pb2.ServerLiveRequest()), lambda answer: bool(answer.live))

    def ready(self) -> Call[GrpcRequest, Any, bool]:
        """Is the server ready for requests?"""
        return Call(GrpcRequest("ServerReady", service_pb2.ServerReadyRequest()), lambda answer: bool(answer.ready))

    def metadata(self) -> Call[GrpcRequest, Any, ServerInfo]:
        """Which server is it?"""
        request = GrpcRequest("ServerMetadata", service_pb2.ServerMetadataRequest())
        return Call(request, lambda answer: ServerInfo(answer.name, answer.version, tuple(answer.extensions)))

    def model_ready(self, model: str, version: str) -> Call[GrpcRequest, Any, bool]:
        """Is a model ready for requests?"""
        message = service_pb2.ModelReadyRequest(name=model, version=version)
        return Call(GrpcRequest("ModelReady", message), lambda answer: bool(answer.ready))

    def models(self) -> Call[GrpcRequest, Any, list[ModelInfo]]:
        """The repository index."""
        request = GrpcRequest("RepositoryIndex", service_pb2.RepositoryIndexRequest())
        return Call(request, lambda answer: [ModelInfo(m.name, m.version, m.state, m.reason) for m in answer.models])

    def load(self, model: str, config: str | None) -> Call[GrpcRequest, Any, None]:
        """Load a model, or load it again."""
        message = service_pb2.RepositoryModelLoadRequest(model_name=model)
        if config is not None:
            message.parameters["config"].string_param = config
        return Call(GrpcRequest("RepositoryModelLoad", message), _nothing)

    def unload(self, model: str, *, dependents: bool) -> Call[GrpcRequest, Any, None]:
        """Unload a model."""
        message = service_pb2.RepositoryModelUnloadRequest(model_name=model)
        message.parameters["unload_dependents"].bool_param = dependents
        return Call(GrpcRequest("RepositoryModelUnload", message), _nothing)

    def config(self, model: str, version: str) -> Call[GrpcRequest, Any, ModelConfig]:
        """A model's configuration."""
        message = service_pb2.ModelConfigRequest(name=model, version=version)
        return Call(GrpcRequest("ModelConfig", message), lambda answer: _config(answer.config))

    def statistics(self, model: str, version: str) -> Call[GrpcRequest, Any, list[ModelStatistics]]:
        """Counters of one model, or of all with an empty name."""
        message = service_pb2.ModelStatisticsRequest(name=model, version=version)
        return Call(
            GrpcRequest("ModelStatistics", message), lambda answer: [_statistics(m) for m in answer.model_stats]
        )

    def infer(self, request: InferRequest) -> Call[GrpcRequest, Any, InferResult]:
        """Tensors in, tensors out."""
        return Call(GrpcRequest("ModelInfer", infer_message(request)), infer_result)

    def infer_stream(self, request: InferRequest) -> StreamCall[GrpcRequest, Any, InferResult]:
        """Tensors in, any number of answers out."""
        return self._stream(infer_message(request), lambda answer, _: infer_result(answer))

    def generate(self, request: GenerateRequest, config: ModelConfig) -> StreamCall[GrpcRequest, Any, Chunk]:
        """Text in, text out, whole or in pieces."""
        message = service_pb2.ModelInferRequest(model_name=request.model)
        for field in text_fields(request, config, server=self._server):
            _add_input(message, _text_tensor(field, batched=config.max_batch_size > 0))
        return self._stream(message, _chunk)

    def _stream(self, message: Any, read: Callable[[Any, int], ResultT]) -> StreamCall[GrpcRequest, Any, ResultT]:
        # Without this a model that ends with an empty response would give no sign of its end.
        message.parameters["triton_enable_empty_final_response"].bool_param = True
        return StreamCall(GrpcRequest("ModelStreamInfer", message), lambda: GrpcStreamReader(read, server=self._server))


class GrpcStreamReader(Generic[ResultT]):
    """Reads the responses to one request of a ModelStreamInfer stream.

    Args:
        read: Makes a result of a response with outputs and its index.
        server: The server's address, for error messages.
    """

    def __init__(self, read: Callable[[Any, int], ResultT], *, server: str) -> None:
        self._read = read
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
        final = FINAL in response.parameters and response.parameters[FINAL].bool_param
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


def infer_message(request: InferRequest) -> Any:
    """The ModelInferRequest of a tensor request."""
    message = service_pb2.ModelInferRequest(
        model_name=request.model, model_version=request.version, id=request.request_id
    )
    for name, array in request.inputs.items():
        _add_input(message, to_wire(name, array))
    for name in request.outputs or ():
        message.outputs.add(name=name)
    return message


def infer_result(response: Any) -> InferResult:
    """The result that a ModelInferResponse carries."""
    return InferResult(
        model=response.model_name,
        version=response.model_version,
        request_id=response.id,
        outputs=_outputs(response),
        parameters={name: _parameter(value) for name, value in response.parameters.items()},
    )


def _add_input(message: Any, tensor: WireTensor) -> None:
    message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
    message.raw_input_contents.append(tensor.raw)


def _text_tensor(field: TextField, *, batched: bool) -> WireTensor:
    values = np.array(field.values, DTYPES[field.datatype])  # [elements]
    return to_wire(field.name, values[np.newaxis] if batched else values)  # [1, elements] or [elements]


def _chunk(response: Any, index: int) -> Chunk:
    raw = response.raw_output_contents
    if len(raw) == len(response.outputs):
        pairs = zip(response.outputs, raw, strict=True)
        return chunk_of({o.name: plain_values(o.name, o.datatype, content) for o, content in pairs}, index=index)
    arrays = _outputs(response)
    return chunk_of({name: array.reshape(-1).tolist() for name, array in arrays.items()}, index=index)


def _outputs(response: Any) -> Mapping[str, Tensor]:
    raw = response.raw_output_contents
    if raw:
        return {
            output.name: from_wire(WireTensor(output.name, output.datatype, tuple(output.shape), raw[index]))
            for index, output in enumerate(response.outputs)
        }
    return {output.name: _from_contents(output) for output in response.outputs}


def _from_contents(output: Any) -> Tensor:
    contents = CONTENTS.get(output.datatype)
    values = list(getattr(output.contents, contents)) if contents else []
    return from_values(output.name, output.datatype, output.shape, values)


def _parameter(value: Any) -> object:
    kind = value.WhichOneof("parameter_choice")
    return getattr(value, kind) if kind else None


def _config(config: Any) -> ModelConfig:
    return ModelConfig(
        name=config.name,
        backend=config.backend or config.platform,
        max_batch_size=config.max_batch_size,
        decoupled=config.model_transaction_policy.decoupled,
        inputs=tuple(_tensor_info(tensor) for tensor in config.input),
        outputs=tuple(_tensor_info(tensor) for tensor in config.output),
        parameters={name: value.string_value for name, value in config.parameters.items()},
    )


def _tensor_info(tensor: Any) -> TensorInfo:
    datatype = model_config_pb2.DataType.Name(tensor.data_type).removeprefix("TYPE_")
    return TensorInfo(tensor.name, BYTES if datatype == "STRING" else datatype, tuple(tensor.dims))


def _statistics(model: Any) -> ModelStatistics:
    times = model.inference_stats
    compute_ns = times.compute_input.ns + times.compute_infer.ns + times.compute_output.ns
    return ModelStatistics(
        name=model.name,
        version=model.version,
        inference_count=model.inference_count,
        execution_count=model.execution_count,
        success_count=times.success.count,
        fail_count=times.fail.count,
        success_s=times.success.ns / NANOSECONDS_PER_S,
        queue_s=times.queue.ns / NANOSECONDS_PER_S,
        compute_s=compute_ns / NANOSECONDS_PER_S,
        last_inference_ms=model.last_inference,
    )


def _nothing(answer: Any) -> None:
    """Load and unload answer with an empty message."""
