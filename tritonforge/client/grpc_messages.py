"""What is sent and what comes back over gRPC. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import Message
from tritonclient.grpc import service_pb2

from tritonforge.client.tensors import BYTES, DTYPES, WireTensor, from_values, from_wire, plain_values, to_wire
from tritonforge.client.text import TextField
from tritonforge.client.types import InferRequest, InferResult, Tensor

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


@dataclass(frozen=True, slots=True)
class GrpcRequest:
    """A request.

    Args:
        method: Method of the GRPCInferenceService.
        message: Its request message.
    """

    method: str
    message: Message


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


def text_message(model: str, fields: Iterable[TextField], *, batched: bool) -> Any:
    """The ModelInferRequest of a question; `batched` when the model's tensors have a batch dimension."""
    message = service_pb2.ModelInferRequest(model_name=model)
    for field in fields:
        values = np.array(field.values, DTYPES[field.datatype])  # [elements]
        _add_input(message, to_wire(field.name, values[np.newaxis] if batched else values))  # [1, elements] if batched
    return message


def text_outputs(response: Any) -> Mapping[str, Sequence[object]]:
    """The outputs that a ModelInferResponse carries, each as a flat list of elements."""
    raw = response.raw_output_contents
    if len(raw) == len(response.outputs):
        pairs = zip(response.outputs, raw, strict=True)
        return {o.name: plain_values(o.name, o.datatype, content) for o, content in pairs}
    arrays = _outputs(response)
    return {name: array.reshape(-1).tolist() for name, array in arrays.items()}


def _add_input(message: Any, tensor: WireTensor) -> None:
    message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
    message.raw_input_contents.append(tensor.raw)


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
