"""Where the server answers, by its command line."""

import pytest

from tritonforge.runtime.gateway.errors import ServerUnsuitable
from tritonforge.runtime.gateway.server_address import grpc_address


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ([], "127.0.0.1:8001"),
        (["--grpc-port=9001"], "127.0.0.1:9001"),
        (["--grpc-port", "9001", "--http-port", "9000"], "127.0.0.1:9001"),
        (["--grpc-address=0.0.0.0", "--grpc-port=9001"], "127.0.0.1:9001"),
        (["--grpc-address", "10.0.0.7"], "10.0.0.7:8001"),
        (["--grpc-address=::1"], "[::1]:8001"),
        (["--allow-grpc=true", "--grpc-use-ssl=false"], "127.0.0.1:8001"),
    ],
)
def test_address_follows_from_the_options(options: list[str], address: str) -> None:
    assert grpc_address(["/opt/tritonserver/bin/tritonserver", "--model-repository=/models", *options]) == address


@pytest.mark.parametrize("option", ["--allow-grpc=false", "--allow-grpc=0", "--grpc-use-ssl=true"])
def test_server_that_cannot_be_reached_is_refused_by_its_option(option: str) -> None:
    with pytest.raises(ServerUnsuitable, match=option.partition("=")[0]):
        grpc_address(["tritonserver", option])
