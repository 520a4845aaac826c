"""Everything that can be asked of a server, in the KServe v2 protocol over gRPC. Pure."""

from __future__ import annotations

from typing import Any

from tritonclient.grpc import model_config_pb2, service_pb2

from tritonforge.client.grpc_messages import GrpcRequest, infer_message, infer_result, text_message, text_outputs
from tritonforge.client.grpc_readers import GrpcStreamReader
from tritonforge.client.tensors import BYTES
from tritonforge.client.text import TextPieces, text_fields
from tritonforge.client.transport import Call, StreamCall
from tritonforge.client.types import (
    NANOSECONDS_PER_S,
    Chunk,
    GenerateRequest,
    InferRequest,
    InferResult,
    ModelConfig,
    ModelInfo,
    ModelStatistics,
    ServerInfo,
    TensorInfo,
)


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
        return StreamCall(
            _streamed(infer_message(request)),
            lambda: GrpcStreamReader(lambda answer, _: infer_result(answer), server=self._server),
        )

    def generate(self, request: GenerateRequest, config: ModelConfig) -> StreamCall[GrpcRequest, Any, Chunk]:
        """Text in, text out, whole or in pieces."""
        fields = text_fields(request, config, server=self._server)
        message = text_message(request.model, fields, batched=config.max_batch_size > 0)

        def open_stream() -> GrpcStreamReader[Chunk]:
            pieces = TextPieces(request.model, server=self._server)
            return GrpcStreamReader(
                lambda response, index: pieces.read(text_outputs(response), index=index),
                server=self._server,
                check=pieces.check,
            )

        return StreamCall(_streamed(message), open_stream)


def _streamed(message: Any) -> GrpcRequest:
    # Without this a model that ends with an empty response would give no sign of its end.
    message.parameters["triton_enable_empty_final_response"].bool_param = True
    return GrpcRequest("ModelStreamInfer", message)


def _config(config: Any) -> ModelConfig:
    return ModelConfig(
        name=config.name,
        backend=config.backend or config.platform,
        max_batch_size=config.max_batch_size,
        decoupled=config.model_transaction_policy.decoupled,
        inputs=tuple(_tensor_info(tensor, optional=tensor.optional) for tensor in config.input),
        outputs=tuple(_tensor_info(tensor) for tensor in config.output),
        parameters={name: value.string_value for name, value in config.parameters.items()},
    )


def _tensor_info(tensor: Any, *, optional: bool = True) -> TensorInfo:
    datatype = model_config_pb2.DataType.Name(tensor.data_type).removeprefix("TYPE_")
    return TensorInfo(tensor.name, BYTES if datatype == "STRING" else datatype, tuple(tensor.dims), optional)


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
