"""Where the server that runs this model answers gRPC requests: read from its command line, so that it is said once.

Triton tells a model nothing about its own ports. The model's process is a child of the server, whose arguments the
kernel shows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .errors import ServerUnsuitable

# Defaults of tritonserver 2.51.
_PORT = "8001"
_EVERY_INTERFACE = ("0.0.0.0", "::", "")
_LOOPBACK = "127.0.0.1"
_TRUE = ("true", "1", "on")


def grpc_address_of_parent() -> str:
    """``host:port`` of the server whose child this process is.

    Raises:
        ServerUnsuitable: The server answers no plain gRPC requests.
    """
    try:
        raw = Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
    except OSError:
        return grpc_address([])  # not to be seen: the defaults are the best guess
    return grpc_address(raw.decode(errors="replace").rstrip("\0").split("\0"))


def grpc_address(command: Sequence[str]) -> str:
    """``host:port`` that a tritonserver command line makes, as seen from the same machine. Pure.

    Args:
        command: Program and arguments; options stand as ``--name=value`` or ``--name value``.

    Raises:
        ServerUnsuitable: gRPC is off, or asks for TLS.
    """
    options = _options(command)
    if options.get("allow-grpc", "true").lower() not in _TRUE:
        raise ServerUnsuitable("the server runs with --allow-grpc=false; the gateway reaches its engines over gRPC")
    if options.get("grpc-use-ssl", "false").lower() in _TRUE:
        raise ServerUnsuitable("the server runs with --grpc-use-ssl; the gateway reaches its engines over plain gRPC")
    host = options.get("grpc-address", "")
    host = _LOOPBACK if host in _EVERY_INTERFACE else host
    return f"{f'[{host}]' if ':' in host else host}:{options.get('grpc-port', _PORT)}"


def _options(command: Sequence[str]) -> dict[str, str]:
    options = {}
    for index, word in enumerate(command):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            following = command[index + 1] if index + 1 < len(command) else ""
            options[name] = value if equals else following
    return options
