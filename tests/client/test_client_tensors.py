"""Tensors, models and their states against a real server, over both protocols."""

import ml_dtypes
import numpy as np
import pytest

from tests.support.triton_models import ECHO_TYPES
from tritonforge.client import Client
from tritonforge.client.tensors import DTYPES
from tritonforge.errors import ClientError, InvalidRequest, ModelNotFound, ModelNotReady, NotReady, UsageBug
from tritonforge.server import RunningServer

pytestmark = pytest.mark.triton


@pytest.mark.parametrize("datatype", ECHO_TYPES)
def test_numbers_come_back_as_they_were(client: Client, datatype: str):
    array = np.array([0, 1, 1, 0, 1], DTYPES[datatype])
    result = client.infer("echo", {f"in_{datatype.lower()}": array})
    back = result[f"out_{datatype.lower()}"]
    assert back.dtype == array.dtype
    assert back.tolist() == array.tolist()


def test_bfloat16_and_texts_come_back_as_they_were(client: Client):
    numbers = np.array([1.5, -2, 3e38], ml_dtypes.bfloat16)
    texts = np.array(["é", b"\x00\xff", ""], object)
    result = client.infer("echo", {"in_bf16": numbers, "in_string": texts}, request_id="r7")
    assert result["out_bf16"].tobytes() == numbers.tobytes()
    assert result["out_string"].tolist() == ["é".encode(), b"\x00\xff", b""]
    assert (result.model, result.version, result.request_id) == ("echo", "1", "r7")


def test_empty_and_large_tensors_come_back_as_they_were(client: Client):
    large = np.arange(1_000_000, dtype=np.float64)
    result = client.infer("echo", {"in_fp64": large, "in_int8": np.zeros(0, np.int8)})
    assert np.array_equal(result["out_fp64"], large)
    assert result["out_int8"].shape == (0,)


def test_only_the_outputs_asked_for_are_sent(client: Client):
    inputs = {"in_int32": np.ones(1, np.int32), "in_fp32": np.ones(1, np.float32)}
    assert list(client.infer("echo", inputs, outputs=["out_fp32"]).outputs) == ["out_fp32"]


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"in_fp32": np.zeros(2)}, "data-type is 'FP64', but model 'echo' expects 'FP32'"),
        ({"in_fp32": np.zeros((2, 2), np.float32)}, r"Expected \[-1\], got \[2,2\]"),
        ({"x": np.zeros(2)}, "unexpected inference input 'x'"),
    ],
)
def test_a_wrong_tensor_is_named_by_the_server(client: Client, inputs: dict[str, np.ndarray], problem: str):
    with pytest.raises(InvalidRequest, match=problem):
        client.infer("echo", inputs)


def test_infer_on_a_decoupled_model_points_at_infer_stream(client: Client):
    with pytest.raises(InvalidRequest, match="decoupled") as caught:
        client.infer("talker", {"text_input": np.array(["Hi"])})
    assert "infer_stream" in (caught.value.hint or "")


def test_infer_stream_gives_every_response_over_grpc(server: RunningServer):
    inputs = {"text_input": np.array(["a b c"]), "stream": np.array([True])}
    with Client(server.grpc_url) as client:
        texts = [result["text_output"][0] for result in client.infer_stream("talker", inputs)]
    assert texts == [b"a ", b"b ", b"c "]


def test_infer_stream_is_refused_over_http(server: RunningServer):
    with Client(server.http_url) as client, pytest.raises(UsageBug, match="needs gRPC"):
        client.infer_stream("talker", {})


def test_the_server_and_its_models_are_described(client: Client):
    assert client.live()
    assert client.ready()
    info = client.metadata()
    assert info.name == "triton"
    assert "binary_tensor_data" in info.extensions
    states = {entry.name: entry.state for entry in client.models()}
    assert states["talker"] == "READY"


def test_a_configuration_reads_the_same_over_both_protocols(server: RunningServer):
    with Client(server.grpc_url) as grpc, Client(server.http_url) as http:
        config = grpc.config("batched")
        assert config == http.config("batched")
    assert (config.backend, config.max_batch_size, config.decoupled) == ("python", 8, True)
    assert [(t.datatype, t.dims) for t in config.inputs if t.name == "stop_words"] == [("BYTES", (-1,))]


def test_statistics_count_requests_the_same_over_both_protocols(server: RunningServer):
    with Client(server.grpc_url) as grpc, Client(server.http_url) as http:
        before = grpc.statistics("echo")[0]
        grpc.infer("echo", {"in_int8": np.ones(1, np.int8)})
        after = grpc.statistics("echo")[0]
        assert after == http.statistics("echo")[0]
        assert {entry.name for entry in http.statistics()} >= {"echo", "talker"}
    assert after.success_count == before.success_count + 1
    assert after.success_s > before.success_s


def test_a_model_is_unloaded_and_loaded_again(client: Client):
    client.unload("spare")
    assert not client.model_ready("spare")
    with pytest.raises(ModelNotReady, match="has no available versions") as caught:
        client.infer("spare", {})
    assert "unload" in (caught.value.hint or "")
    client.load("spare")
    client.wait_ready("spare", version="1")
    assert client.model_ready("spare", version="1")
    assert not client.model_ready("spare", version="2")


def test_a_model_can_be_loaded_with_another_configuration(client: Client):
    client.load("spare", config='{"backend": "python", "max_batch_size": 4}')
    try:
        assert client.config("spare").max_batch_size == 4
    finally:
        # Loading alone would not do: Triton compares the files, and those have not changed.
        client.unload("spare")
        client.load("spare")
    assert client.config("spare").max_batch_size == 0


def test_a_load_that_fails_gives_the_servers_reason(client: Client):
    with pytest.raises(ModelNotReady, match="the weights are of another model"):
        client.load("failing")
    with pytest.raises(ModelNotReady, match="the weights are of another model"):
        client.wait_ready("failing")


def test_loading_what_is_not_there_says_where_to_look(client: Client):
    with pytest.raises(ModelNotFound, match="failed to poll") as caught:
        client.load("zzz")
    assert "config.pbtxt" in (caught.value.hint or "")


def test_waiting_for_an_unknown_model_ends_by_its_deadline(client: Client):
    with pytest.raises(NotReady, match="model zzz at .* not ready"):
        client.wait_ready("zzz", timeout_s=0.2)


def test_an_array_without_a_datatype_is_refused_before_it_is_sent(client: Client):
    with pytest.raises(ClientError, match="complex128"):
        client.infer("echo", {"in_fp32": np.zeros(1, complex)})
