"""From an address to the codec and the blocking transport of its protocol.

The transports are imported when they are needed: each brings a networking library, and a client uses one.
"""

from __future__ import annotations

from typing import Any

from tritonforge.client.address import Address
from tritonforge.client.transport import Codec, Transport


def connect(address: Address) -> tuple[Codec[Any, Any, Any], Transport[Any, Any, Any]]:
    """The codec and the transport for a server. Nothing is sent yet."""
    if address.protocol == "http":
        from tritonforge.client.codec_http import HttpCodec
        from tritonforge.client.http_sync import HttpTransport

        return HttpCodec(address.target), HttpTransport(address.target)
    from tritonforge.client.codec_grpc import GrpcCodec
    from tritonforge.client.grpc_sync import GrpcTransport

    return GrpcCodec(address.target), GrpcTransport(address.target)
