"""The address of a server, and the protocol that goes with it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from tritonforge.errors import ClientError

GRPC_PORT = 8001
HTTP_SCHEMES = ("http", "https")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is.

    Args:
        protocol: ``grpc`` or ``http``.
        target: ``host:port`` for gRPC, the base URL for HTTP.
    """

    protocol: Literal["grpc", "http"]
    target: str


def parse_address(url: str) -> Address:
    """Read ``host:port`` or ``grpc://host:port`` (gRPC) or ``http[s]://host:port`` (HTTP).

    Raises:
        ClientError: It is none of these.
    """
    hint = "write localhost:8001, grpc://localhost:8001 or http://localhost:8000"
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "grpc", url
    if scheme not in ("grpc", *HTTP_SCHEMES):
        raise ClientError(f"server address {url!r} has the unknown scheme {scheme!r}", hint=hint)
    try:
        parts = urlsplit(f"//{rest}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ClientError(f"server address {url!r}: {error}", hint=hint) from error
    if not host or " " in rest:
        raise ClientError(f"server address {url!r} names no host", hint=hint)
    if scheme in HTTP_SCHEMES:
        return Address("http", f"{scheme}://{rest}".rstrip("/"))
    bracketed = f"[{host}]" if ":" in host else host
    return Address("grpc", f"{bracketed}:{port or GRPC_PORT}")
