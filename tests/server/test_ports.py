import socket
from collections.abc import Iterator

import pytest

from tritonforge.errors import PortTaken, ServerError
from tritonforge.server.options import ServerOptions
from tritonforge.server.ports import FREE_PORTS, choose_address, choose_free_port, is_free

HOST = "127.0.0.1"


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("option", ["grpc_port", "http_port", "metrics_port"])
def test_a_taken_port_names_its_option(option: str, taken_port: int):
    chosen = {"grpc_port": 0, "http_port": 0, "metrics_port": 0, option: taken_port}
    with pytest.raises(PortTaken, match=f"port {taken_port} on 127.0.0.1 is in use") as caught:
        choose_address(ServerOptions(**chosen))
    assert f"--{option.replace('_', '-')}" in (caught.value.hint or "")


def test_zero_picks_three_different_free_ports():
    address = choose_address(ServerOptions(grpc_port=0, http_port=0, metrics_port=0))
    ports = {address.grpc_port, address.http_port, address.metrics_port}
    assert len(ports) == 3
    assert all(port in FREE_PORTS for port in ports)


def test_a_port_that_was_asked_for_is_kept():
    port = choose_free_port(host=HOST)
    assert choose_address(ServerOptions(grpc_port=port, http_port=0, metrics_port=0)).grpc_port == port


def test_the_same_port_twice_is_refused():
    with pytest.raises(ServerError, match="same port: --grpc-port 18500, --http-port 18500"):
        choose_address(ServerOptions(grpc_port=18500, http_port=18500, metrics_port=0))


@pytest.mark.parametrize("host", ["203.0.113.7", "no.such.host.invalid"])
def test_a_host_that_is_not_this_machine_is_named(host: str):
    with pytest.raises(ServerError, match=host):
        is_free(18500, host=host)


def test_a_listening_port_is_not_free(taken_port: int):
    assert not is_free(taken_port, host=HOST)
