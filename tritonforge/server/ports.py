"""Ports: is one free, and which one is."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterable

from tritonforge.errors import PortTaken, ServerError
from tritonforge.server.options import ServerAddress, ServerOptions

# Below the range from which Linux takes the ports of outgoing connections (32768 up), so that a port found free is not
# lost to a passing connection before the server binds it.
FREE_PORTS = range(18000, 32000)
ATTEMPTS = 200


def choose_address(options: ServerOptions) -> ServerAddress:
    """The ports that a server is to use, each known to be free a moment ago.

    Raises:
        PortTaken: A port that was asked for is in use; its option is named.
        ServerError: The host is not an address of this machine, or two endpoints have the same port.
    """
    wanted = {
        "--grpc-port": options.grpc_port,
        "--http-port": options.http_port,
        "--metrics-port": options.metrics_port,
    }
    chosen = {option: port for option, port in wanted.items() if port != 0}
    if len(set(chosen.values())) < len(chosen):
        raise ServerError(
            f"two endpoints have the same port: {', '.join(f'{option} {port}' for option, port in chosen.items())}",
            hint="give each endpoint a port of its own; 0 picks a free one",
        )
    for option, port in chosen.items():
        if not is_free(port, host=options.host):
            raise PortTaken(port, host=options.host, option=option)
    for option, port in wanted.items():
        if port == 0:
            chosen[option] = choose_free_port(host=options.host, taken=chosen.values())
    return ServerAddress(options.host, chosen["--grpc-port"], chosen["--http-port"], chosen["--metrics-port"])


def choose_free_port(*, host: str, taken: Iterable[int] = ()) -> int:
    """A port that nothing listens on, other than those in `taken`.

    Raises:
        ServerError: None was found.
    """
    used = set(taken)
    for port in random.sample(FREE_PORTS, ATTEMPTS):
        if port not in used and is_free(port, host=host):
            return port
    raise ServerError(
        f"no free port on {host} among {ATTEMPTS} tried from {FREE_PORTS.start} to {FREE_PORTS.stop - 1}",
        hint="name the ports with --grpc-port, --http-port and --metrics-port",
    )


def is_free(port: int, *, host: str) -> bool:
    """Whether a server could listen on the port now.

    Raises:
        ServerError: `host` is not an address of this machine, or the port is not one that this user may open.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # A port whose last connections are in TIME_WAIT is free for a server; without this it would seem taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except PermissionError as error:
            raise ServerError(f"port {port} on {host}: {error.strerror}", hint="use a port above 1023") from error
        except socket.gaierror as error:
            raise ServerError(f"host {host!r}: {error.strerror}", hint="pass an address of this machine") from error
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise ServerError(f"host {host}: {error.strerror}", hint="pass an address of this machine") from error
    return True
