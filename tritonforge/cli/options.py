"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

from tritonforge.server.state import running_server


def server_of(repository: Path, url: str | None) -> str | None:
    """The server of a repository as a gRPC address: the one given, else the one that runs here, else None."""
    if url is not None:
        return url
    address = running_server(repository)
    return None if address is None else address.grpc_url
