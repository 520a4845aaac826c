"""Servers that misbehave in ways that a real Triton does not show on demand."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from tritonforge.client import Client
from tritonforge.errors import (
    ClientError,
    ConnectFailed,
    ModelNotFound,
    NotReady,
    Rejected,
    StreamBroken,
    TimedOut,
    TransportError,
)
from tritonforge.server.ports import choose_free_port

HOST = "127.0.0.1"
Part = bytes | float | None
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
UNKNOWN = b'{"error":"Request for unknown model: \'m\' is not found"}'
CONFIG = b'{"name":"m","backend":"python","input":[{"name":"text_input","data_type":"TYPE_STRING","dims":[1]}]}'


def whole(body: bytes, status: bytes = b"200 OK") -> bytes:
    """An answer after which the connection ends, and says so: a client that kept it would meet its end instead."""
    return b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


@contextmanager
def answering(*answers: Part | list[Part]) -> Iterator[int]:
    """A server that answers each connection's request with the next of `answers`.

    An answer may be a list of parts. A number is a pause in seconds; None is silence with the connection open.
    """
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        done = threading.Event()

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    for part in answer if isinstance(answer, list) else [answer]:
                        if isinstance(part, bytes):
                            with suppress(OSError):  # the client may have gone
                                connection.sendall(part)
                        else:
                            done.wait(10 if part is None else part)

        thread = threading.Thread(target=serve, daemon=True)  # a test that fails leaves it waiting
        thread.start()
        yield listener.getsockname()[1]
        done.set()
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_no_server_is_said_with_the_command_that_starts_one(scheme: str):
    port = choose_free_port(host=HOST)
    with Client(f"{scheme}://{HOST}:{port}", timeout_s=5) as client:
        with pytest.raises(ConnectFailed, match=str(port)) as caught:
            client.models()
        assert "tritonforge serve" in (caught.value.hint or "")
        assert not client.live()
        assert not client.model_ready("m")
        with pytest.raises(NotReady, match="the server does not answer"):
            client.wait_ready("m", timeout_s=0.2)


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_host_that_does_not_exist_is_a_failed_connection(scheme: str):
    with (
        Client(f"{scheme}://no-such-host.invalid:1", timeout_s=5) as client,
        pytest.raises(ConnectFailed, match="no-such-host"),
    ):
        client.models()


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_server_that_says_nothing_is_given_up_at_the_deadline(scheme: str):
    with answering(None) as port, Client(f"{scheme}://{HOST}:{port}") as client:
        start_s = time.monotonic()
        with pytest.raises(TimedOut, match=r"no answer within 0\.3 s"):
            client.models(timeout_s=0.3)
        assert time.monotonic() - start_s < 3


def test_a_connection_that_is_lost_before_the_answer_is_a_transport_error():
    with (
        answering(b"") as port,
        Client(f"http://{HOST}:{port}") as client,
        pytest.raises(TransportError, match="connection lost"),
    ):
        client.models()


def test_an_answer_that_is_cut_in_the_middle_is_a_transport_error():
    cut = whole(b'[{"name": "m"}]')[:-4]
    with answering(cut) as port, Client(f"http://{HOST}:{port}") as client, pytest.raises(TransportError, match="lost"):
        client.models()


def test_a_stream_that_is_cut_says_after_how_many_responses():
    event = b'data: {"text_output":"a"}\n\n'
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
    cut = head + b"%x\r\n%s\r\n" % (len(event), event)
    with (
        answering(whole(CONFIG), cut) as port,
        Client(f"http://{HOST}:{port}") as client,
        pytest.raises(StreamBroken, match="stream broken after 1 responses"),
    ):
        list(client.stream("m", "Hi"))


def test_another_kind_of_server_is_recognised():
    with (
        answering(whole(b"<html>It works!</html>")) as port,
        Client(f"http://{HOST}:{port}") as client,
        pytest.raises(ClientError, match="not JSON: '<html>It works!") as caught,
    ):
        client.models()
    assert caught.value.hint == "is this a Triton server?"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'[{"title": "m"}]', "the answer of /v2/repository/index has no 'name'"),
        (b'["m"]', "the answer of /v2/repository/index has an unexpected form: '\\[\"m\"\\]'"),
        (b"3", "the answer of /v2/repository/index has an unexpected form: '3'"),
    ],
)
def test_json_of_another_shape_is_recognised(body: bytes, problem: str):
    with (
        answering(whole(body)) as port,
        Client(f"http://{HOST}:{port}") as client,
        pytest.raises(ClientError, match=problem),
    ):
        client.models()


def test_a_text_answer_of_another_shape_is_recognised():
    with (
        answering(whole(CONFIG), whole(b"[1]")) as port,
        Client(f"http://{HOST}:{port}") as client,
        pytest.raises(ClientError, match=r"not a JSON object: '\[1\]'"),
    ):
        client.generate("m", "Hi")


def test_an_error_status_without_a_reason_keeps_the_status():
    with (
        answering(whole(b"", b"503 Service Unavailable")) as port,
        Client(f"http://{HOST}:{port}") as client,
        pytest.raises(Rejected, match="HTTP status 503"),
    ):
        client.models()


def test_a_stream_that_falls_silent_is_given_up_at_the_deadline():
    event = b'data: {"text_output":"a"}\n\n'
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
    silent = [head + b"%x\r\n%s\r\n" % (len(event), event), None]
    with answering(whole(CONFIG), silent) as port, Client(f"http://{HOST}:{port}") as client:
        stream = client.stream("m", "Hi", timeout_s=0.5)
        start_s = time.monotonic()
        assert next(stream).text == "a"
        with pytest.raises(TimedOut, match=r"no answer within 0\.5 s"):
            next(stream)
        assert 0.4 < time.monotonic() - start_s < 3


@pytest.mark.parametrize(
    "answer", [[0.4, HEAD, None], [HEAD, *[b"[", 0.1] * 20]], ids=["late header, then silence", "byte after byte"]
)
def test_reads_share_one_deadline(answer: list[Part]):
    with answering(answer) as port, Client(f"http://{HOST}:{port}") as client:
        start_s = time.monotonic()
        with pytest.raises(TimedOut, match=r"no answer within 0\.5 s"):
            client.models(timeout_s=0.5)
        assert 0.4 < time.monotonic() - start_s < 0.8


def test_the_requests_of_one_call_share_its_deadline():
    with answering([0.4, whole(CONFIG)], None) as port, Client(f"http://{HOST}:{port}") as client:
        start_s = time.monotonic()
        with pytest.raises(TimedOut, match=r"no answer within 0\.5 s"):
            client.generate("m", "Hi", timeout_s=0.5)
        assert time.monotonic() - start_s < 0.8


def test_advice_about_a_refusal_does_not_pass_the_deadline():
    with (
        answering([0.4, whole(UNKNOWN, b"404 Not Found")], None) as port,
        Client(f"http://{HOST}:{port}") as client,
    ):
        start_s = time.monotonic()
        with pytest.raises(ModelNotFound):
            client.config("m", timeout_s=0.5)
        assert time.monotonic() - start_s < 0.8


class ReadyService(service_pb2_grpc.GRPCInferenceServiceServicer):
    def ModelReady(self, request: object, context: object) -> object:
        return service_pb2.ModelReadyResponse(ready=True)


def test_a_client_that_was_there_first_finds_the_server_soon_after_its_start():
    port = choose_free_port(host=HOST)
    server = grpc.server(ThreadPoolExecutor(1))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(ReadyService(), server)
    with Client(f"{HOST}:{port}") as client:
        with pytest.raises(NotReady, match="does not answer"):
            client.wait_ready("m", timeout_s=3)  # long enough for several attempts, each backing off further
        server.add_insecure_port(f"{HOST}:{port}")
        server.start()
        try:
            client.wait_ready("m", timeout_s=5)
        finally:
            server.stop(grace=None).wait()
