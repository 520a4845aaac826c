"""What the codecs make of statuses, errors in streams and ends, without a server."""

import numpy as np
import pytest
from tritonclient.grpc import service_pb2

from tritonforge.client.codec_grpc import GrpcCodec
from tritonforge.client.codec_http import HttpCodec, infer_request
from tritonforge.client.grpc_messages import infer_result
from tritonforge.client.grpc_readers import error_of
from tritonforge.client.http_messages import HttpAnswer, check
from tritonforge.client.types import Chunk, GenerateRequest, InferRequest, ModelConfig, TensorInfo
from tritonforge.errors import (
    Cancelled,
    ClientError,
    ConnectFailed,
    InvalidRequest,
    ModelNotFound,
    ModelNotReady,
    NoAnswer,
    Rejected,
    StreamBroken,
    TimedOut,
    TransportError,
)

SERVER = "host:1"
CONFIG = ModelConfig("m", "python", 0, True, (TensorInfo("text_input", "BYTES", (1,)),), (), {})
QUESTION = GenerateRequest("m", {"text_input": "Hi"}, stream=True)
UNKNOWN = "Request for unknown model: 'm' is not found"


@pytest.mark.parametrize(
    ("code", "details", "received", "kind"),
    [
        ("DEADLINE_EXCEEDED", "", 3, TimedOut),
        ("CANCELLED", "", 0, Cancelled),
        ("UNAVAILABLE", "failed to connect to all addresses; last error: ...", 0, ConnectFailed),
        ("UNAVAILABLE", "Socket closed", 0, TransportError),
        ("UNAVAILABLE", "Socket closed", 2, StreamBroken),
        ("UNAVAILABLE", "Exceeds maximum queue size", 0, Rejected),
        ("NOT_FOUND", UNKNOWN, 0, ModelNotFound),
        ("NOT_FOUND", "Request for unknown model: 'm' has no available versions", 0, ModelNotReady),
        ("INVALID_ARGUMENT", "max_tokens is 0", 0, InvalidRequest),
        ("INTERNAL", "the engine fell over", 0, Rejected),
        ("INTERNAL", "the engine fell over", 1, StreamBroken),
    ],
)
def test_each_grpc_status_has_its_error(code: str, details: str, received: int, kind: type[ClientError]):
    assert type(error_of(code, details, server=SERVER, after_s=1, received=received)) is kind


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, b'{"error":"%s"}' % UNKNOWN.encode(), ModelNotFound),
        (400, b'{"error":"max_tokens is 0"}', InvalidRequest),
        (400, b'data: {"error":"max_tokens is 0"}\n\n', InvalidRequest),
        (500, b'{"error":"Unable to parse \'data\': not a number"}', InvalidRequest),
        (500, b'{"error":"boom"}', Rejected),
        (502, b"<html>Bad Gateway</html>", Rejected),
    ],
)
def test_each_http_status_has_its_error(status: int, body: bytes, kind: type[ClientError]):
    with pytest.raises(kind) as caught:
        check(HttpAnswer(status, body), server=SERVER)
    assert type(caught.value) is kind


def response(**fields: object) -> service_pb2.ModelStreamInferResponse:
    return service_pb2.ModelStreamInferResponse(**fields)


def test_a_grpc_stream_that_ends_without_its_last_response_is_broken():
    reader = GrpcCodec(SERVER).generate(QUESTION, CONFIG).open()
    with pytest.raises(StreamBroken, match="ended the stream before the last response"):
        reader.end()


def test_a_grpc_stream_may_end_with_an_empty_response():
    reader = GrpcCodec(SERVER).infer_stream(InferRequest("m", {"x": np.zeros(1, np.int8)})).open()
    assert reader.feed(final()) == []
    assert reader.end() == []


def test_an_error_in_a_grpc_stream_without_a_status_is_known_by_its_words():
    reader = GrpcCodec(SERVER).generate(QUESTION, CONFIG).open()
    with pytest.raises(ModelNotFound):
        reader.feed(response(error_message=UNKNOWN))


def test_typed_contents_are_read_as_well_as_raw_bytes():
    answer = service_pb2.ModelInferResponse(model_name="m")
    tensor = answer.outputs.add(name="y", datatype="INT32", shape=[2])
    tensor.contents.int_contents.extend([1, 2])
    assert infer_result(answer)["y"].tolist() == [1, 2]


def test_an_http_stream_gives_chunks_for_any_cut_of_its_bytes():
    body = 'data: {"text_output":"é"}\n\ndata: {"text_output":"b","finish_reason":"stop"}\n\n'.encode()
    reader = HttpCodec(SERVER).generate(QUESTION, CONFIG).open()
    chunks = [chunk for position in range(len(body)) for chunk in reader.feed(body[position : position + 1])]
    assert [(chunk.text, chunk.finish_reason) for chunk in chunks] == [("é", None), ("b", "stop")]


def test_several_responses_to_generate_over_http_point_at_stream():
    reader = HttpCodec(SERVER).generate(GenerateRequest("m", {"text_input": "Hi"}, stream=False), CONFIG).open()
    reader.feed(b'{"error":"generate expects model to produce exactly 1 response, use generate stream"}')
    with pytest.raises(Rejected) as caught:
        reader.end()
    assert "use stream instead of generate" in (caught.value.hint or "")


def test_names_of_models_are_quoted_in_paths():
    request = infer_request(InferRequest("a/b c", {"x": np.zeros(1, np.int8)}, version="2"))
    assert request.path == "/v2/models/a%2Fb%20c/versions/2/infer"
    json_bytes = int(request.headers["Inference-Header-Content-Length"])
    assert request.body[json_bytes:] == b"\0"


def read_over(codec: GrpcCodec | HttpCodec, pieces: list[object], *, stream: bool) -> list[Chunk]:
    reader = codec.generate(GenerateRequest("m", {"text_input": "Hi"}, stream=stream), CONFIG).open()
    return [chunk for piece in pieces for chunk in reader.feed(piece)] + list(reader.end())


def final(*, text: bytes | None = None) -> service_pb2.ModelStreamInferResponse:
    last = response()
    last.infer_response.parameters["triton_final_response"].bool_param = True
    if text is not None:
        last.infer_response.outputs.add(name="text_output", datatype="BYTES", shape=[1])
        last.infer_response.raw_output_contents.append(len(text).to_bytes(4, "little") + text)
    return last


@pytest.mark.parametrize(
    ("codec", "pieces", "stream"),
    [
        (GrpcCodec(SERVER), [final()], True),
        (HttpCodec(SERVER), [b'{"model_name":"m","model_version":"1"}'], False),
        (HttpCodec(SERVER), [b'data: {"model_name":"m","model_version":"1"}\n\n'], True),
        (HttpCodec(SERVER), [], True),
    ],
)
def test_an_answer_without_any_text_is_an_error(codec: GrpcCodec | HttpCodec, pieces: list[object], stream: bool):
    with pytest.raises(NoAnswer, match="host:1: model 'm' answered without a text") as caught:
        read_over(codec, pieces, stream=stream)
    assert "--max-tokens" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("codec", "pieces", "stream"),
    [
        (GrpcCodec(SERVER), [final(text=b"")], True),
        (HttpCodec(SERVER), [b'{"text_output":""}'], False),
        (HttpCodec(SERVER), [b'data: {"text_output":""}\n\n'], True),
    ],
)
def test_an_empty_text_is_an_answer(codec: GrpcCodec | HttpCodec, pieces: list[object], stream: bool):
    assert [chunk.text for chunk in read_over(codec, pieces, stream=stream)] == [""]
