import pytest

from tritonforge.client.address import Address, parse_address
from tritonforge.errors import ClientError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("localhost:8001", Address("grpc", "localhost:8001")),
        ("localhost", Address("grpc", "localhost:8001")),
        ("grpc://10.0.0.1:9", Address("grpc", "10.0.0.1:9")),
        ("[::1]:8001", Address("grpc", "[::1]:8001")),
        ("http://localhost:8000/", Address("http", "http://localhost:8000")),
        ("https://triton.example/prefix", Address("http", "https://triton.example/prefix")),
    ],
)
def test_the_protocol_follows_from_the_scheme(url: str, address: Address):
    assert parse_address(url) == address


@pytest.mark.parametrize("url", ["ftp://host:1", "", "http://", "localhost:port", "localhost:99999", "local host:1"])
def test_an_address_that_makes_no_sense_is_refused(url: str):
    with pytest.raises(ClientError, match="server address") as caught:
        parse_address(url)
    assert "localhost:8001" in (caught.value.hint or "")
