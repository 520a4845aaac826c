"""Everything that can be asked of a server, in the KServe v2 protocol over HTTP: JSON and raw tensors. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from tritonforge.client.http_messages import HttpAnswer, HttpRequest, check, expecting, parse, post
from tritonforge.client.http_readers import BodyReader, EventReader
from tritonforge.client.tensors import BYTES, WireTensor, from_values, from_wire, to_wire
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
    Tensor,
    TensorInfo,
)
from tritonforge.errors import UsageBug

# Length of the JSON part when raw tensors follow it (binary tensor data extension).
JSON_LENGTH = "Inference-Header-Content-Length"
OK = 200

ResultT = TypeVar("ResultT")


class HttpCodec:
    """What can be asked of a server over HTTP; see `Codec`.

    Args:
        server: The server's address, for error messages.
    """

    def __init__(self, server: str) -> None:
        self._server = server

    def live(self) -> Call[HttpRequest, HttpAnswer, bool]:
        """Is the server up?"""
        return Call(HttpRequest("GET", "/v2/health/live"), _is_ok)

    def ready(self) -> Call[HttpRequest, HttpAnswer, bool]:
        """Is the server ready for requests?"""
        return Call(HttpRequest("GET", "/v2/health/ready"), _is_ok)

    def metadata(self) -> Call[HttpRequest, HttpAnswer, ServerInfo]:
        """Which server is it?"""
        return self._json(
            HttpRequest("GET", "/v2"),
            lambda answer: ServerInfo(answer["name"], answer["version"], tuple(answer["extensions"])),
        )

    def model_ready(self, model: str, version: str) -> Call[HttpRequest, HttpAnswer, bool]:
        """Is a model ready for requests?"""
        return Call(HttpRequest("GET", f"{_model_path(model, version)}/ready"), _is_ok)

    def models(self) -> Call[HttpRequest, HttpAnswer, list[ModelInfo]]:
        """The repository index."""
        return self._json(
            post("/v2/repository/index", {}),
            lambda answer: [
                ModelInfo(m["name"], m.get("version", ""), m.get("state", ""), m.get("reason", "")) for m in answer
            ],
        )

    def load(self, model: str, config: str | None) -> Call[HttpRequest, HttpAnswer, None]:
        """Load a model, or load it again."""
        parameters = {} if config is None else {"config": config}
        request = post(f"/v2/repository/models/{quote(model, safe='')}/load", {"parameters": parameters})
        return Call(request, lambda answer: check(answer, server=self._server))

    def unload(self, model: str, *, dependents: bool) -> Call[HttpRequest, HttpAnswer, None]:
        """Unload a model."""
        parameters = {"unload_dependents": dependents}
        request = post(f"/v2/repository/models/{quote(model, safe='')}/unload", {"parameters": parameters})
        return Call(request, lambda answer: check(answer, server=self._server))

    def config(self, model: str, version: str) -> Call[HttpRequest, HttpAnswer, ModelConfig]:
        """A model's configuration."""
        return self._json(HttpRequest("GET", f"{_model_path(model, version)}/config"), _config)

    def statistics(self, model: str, version: str) -> Call[HttpRequest, HttpAnswer, list[ModelStatistics]]:
        """Counters of one model, or of all with an empty name."""
        path = f"{_model_path(model, version)}/stats" if model else "/v2/models/stats"
        return self._json(HttpRequest("GET", path), lambda answer: [_statistics(m) for m in answer["model_stats"]])

    def infer(self, request: InferRequest) -> Call[HttpRequest, HttpAnswer, InferResult]:
        """Tensors in, tensors out."""
        sent = infer_request(request)

        def decode(answer: HttpAnswer) -> InferResult:
            check(answer, server=self._server)
            with expecting(sent.path, answer.body, server=self._server):
                return infer_result(answer, server=self._server)

        return Call(sent, decode)

    def infer_stream(self, request: InferRequest) -> StreamCall[HttpRequest, bytes, InferResult]:
        """Refused: over HTTP, Triton streams plain JSON values without their shapes and datatypes."""
        raise UsageBug(f"infer_stream({request.model!r}) needs gRPC: Triton does not stream tensors over HTTP")

    def generate(self, request: GenerateRequest, config: ModelConfig) -> StreamCall[HttpRequest, bytes, Chunk]:
        """Text in, text out, whole or in pieces."""
        body = {item.name: item.value for item in text_fields(request, config, server=self._server)}
        verb = "generate_stream" if request.stream else "generate"
        reader = EventReader if request.stream else BodyReader
        path = f"{_model_path(request.model, '')}/{verb}"
        return StreamCall(post(path, body), lambda: reader(self._pieces(request), server=self._server))

    def _pieces(self, request: GenerateRequest) -> TextPieces:
        return TextPieces(request.model, server=self._server)

    def _json(self, request: HttpRequest, read: Callable[[Any], ResultT]) -> Call[HttpRequest, HttpAnswer, ResultT]:
        def decode(answer: HttpAnswer) -> ResultT:
            check(answer, server=self._server)
            content = parse(answer.body, server=self._server)
            with expecting(request.path, answer.body, server=self._server):
                return read(content)

        return Call(request, decode)


def infer_request(request: InferRequest) -> HttpRequest:
    """The request of a tensor request: a JSON header, then the raw tensors."""
    tensors = [to_wire(name, array) for name, array in request.inputs.items()]
    header: dict[str, object] = {
        "inputs": [
            {
                "name": tensor.name,
                "datatype": tensor.datatype,
                "shape": tensor.shape,
                "parameters": {"binary_data_size": len(tensor.raw)},
            }
            for tensor in tensors
        ],
        "parameters": {"binary_data_output": True},
    }
    if request.request_id:
        header["id"] = request.request_id
    if request.outputs is not None:
        header["outputs"] = [{"name": name, "parameters": {"binary_data": True}} for name in request.outputs]
    encoded = json.dumps(header).encode()
    return HttpRequest(
        "POST",
        f"{_model_path(request.model, request.version)}/infer",
        b"".join([encoded, *(tensor.raw for tensor in tensors)]),
        {"Content-Type": "application/octet-stream", JSON_LENGTH: str(len(encoded))},
    )


def infer_result(answer: HttpAnswer, *, server: str) -> InferResult:
    """The result that an answer to a tensor request carries."""
    json_bytes = int(answer.headers.get(JSON_LENGTH.lower(), len(answer.body)))
    header = parse(answer.body[:json_bytes], server=server)
    outputs: dict[str, Tensor] = {}
    position = json_bytes
    for output in header.get("outputs", ()):
        name, datatype, shape = output["name"], output["datatype"], tuple(output["shape"])
        size_bytes = output.get("parameters", {}).get("binary_data_size")
        if size_bytes is None:
            outputs[name] = from_values(name, datatype, shape, output["data"])
        else:
            raw = answer.body[position : position + size_bytes]
            outputs[name] = from_wire(WireTensor(name, datatype, shape, raw))
            position += size_bytes
    return InferResult(
        model=header.get("model_name", ""),
        version=header.get("model_version", ""),
        request_id=header.get("id", ""),
        outputs=outputs,
        parameters=header.get("parameters", {}),
    )


def _is_ok(answer: HttpAnswer) -> bool:
    return answer.status == OK


def _model_path(model: str, version: str) -> str:
    path = f"/v2/models/{quote(model, safe='')}"
    return f"{path}/versions/{quote(version, safe='')}" if version else path


def _config(content: Mapping[str, Any]) -> ModelConfig:
    return ModelConfig(
        name=content["name"],
        backend=content.get("backend") or content.get("platform", ""),
        max_batch_size=content.get("max_batch_size", 0),
        decoupled=content.get("model_transaction_policy", {}).get("decoupled", False),
        inputs=tuple(
            _tensor_info(tensor, optional=tensor.get("optional", False)) for tensor in content.get("input", ())
        ),
        outputs=tuple(_tensor_info(tensor) for tensor in content.get("output", ())),
        parameters={name: value["string_value"] for name, value in content.get("parameters", {}).items()},
    )


def _tensor_info(tensor: Mapping[str, Any], *, optional: bool = True) -> TensorInfo:
    datatype = str(tensor["data_type"]).removeprefix("TYPE_")
    return TensorInfo(tensor["name"], BYTES if datatype == "STRING" else datatype, tuple(tensor["dims"]), optional)


def _statistics(model: Mapping[str, Any]) -> ModelStatistics:
    times = model["inference_stats"]
    compute_ns = sum(times[part]["ns"] for part in ("compute_input", "compute_infer", "compute_output"))
    return ModelStatistics(
        name=model["name"],
        version=model["version"],
        inference_count=model["inference_count"],
        execution_count=model["execution_count"],
        success_count=times["success"]["count"],
        fail_count=times["fail"]["count"],
        success_s=times["success"]["ns"] / NANOSECONDS_PER_S,
        queue_s=times["queue"]["ns"] / NANOSECONDS_PER_S,
        compute_s=compute_ns / NANOSECONDS_PER_S,
        last_inference_ms=model["last_inference"],
    )
