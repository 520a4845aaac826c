"""Which repository a server of this machine serves, found by its address."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from tritonforge.server.options import ServerAddress
from tritonforge.server.state import running_server

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EVERYWHERE = ("0.0.0.0", "::")
_OPTION = b"--model-repository="


def repository_of(url: str) -> Path | None:
    """The repository of a server that tritonforge started here; None when there is none at that address.

    Args:
        url: Address of the server.
    """
    for process in Path("/proc").glob("[0-9]*"):
        repository = _served_by(process)
        address = None if repository is None else running_server(repository)
        if address is not None and is_at(url, address):
            return repository
    return None


def is_at(url: str, address: ServerAddress) -> bool:
    """Whether an address means a server of this machine; it has several names."""
    parts = _split(url)
    if parts.port not in (address.grpc_port, address.http_port):
        return False
    is_here = address.host in (*LOOPBACK, *_EVERYWHERE)
    return parts.hostname == address.host or (is_here and parts.hostname in LOOPBACK)


def host_of(url: str) -> str | None:
    """The host of an address, with or without a scheme."""
    return _split(url).hostname


def _served_by(process: Path) -> Path | None:
    """What a process of this machine is told to serve, as the command line of our server says it."""
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
        folder = (process / "cwd").readlink()
    except OSError:
        return None  # it has ended, or is somebody else's
    name = next((word.removeprefix(_OPTION) for word in words if word.startswith(_OPTION)), None)
    return None if name is None else folder / os.fsdecode(name)


def _split(url: str) -> SplitResult:
    return urlsplit(url if "://" in url else f"//{url}")
