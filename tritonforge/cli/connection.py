"""The options by which commands find a server."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from tritonforge.client import Client
from tritonforge.errors import ServerError
from tritonforge.server.state import running_server

DEFAULT_URLS = {"grpc": "localhost:8001", "http": "http://localhost:8000"}

P = ParamSpec("P")
R = TypeVar("R")


def server_options(default_timeout_s: float) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Adds the options that name a server; the command gets a connected `client`.

    Args:
        default_timeout_s: Deadline of a call when --timeout is not given.
    """

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @click.option("--url", envvar="TRITONFORGE_URL", help="Server: localhost:8001 or http://localhost:8000.")
        @click.option("--protocol", type=click.Choice(["grpc", "http"]), help="Protocol, when --url does not say.")
        @click.option(
            "--repository", type=click.Path(path_type=Path), help="Ask the server that serves this repository."
        )
        @click.option("--timeout", "timeout_s", type=float, default=default_timeout_s, help="Deadline in seconds.")
        @functools.wraps(command)
        def with_client(
            *args: object,
            url: str | None,
            protocol: str | None,
            repository: Path | None,
            timeout_s: float,
            **options: object,
        ) -> R:
            with Client(choose_url(url, protocol, repository), timeout_s=timeout_s) as client:
                return command(*args, client=client, **options)

        return with_client

    return decorate


def choose_url(url: str | None, protocol: str | None, repository: Path | None) -> str:
    """The server's address from what was given of it.

    Raises:
        click.UsageError: The options contradict each other.
        ServerError: No server serves the repository.
    """
    if url is not None and repository is not None:
        raise click.UsageError("give either --url or --repository")
    if repository is not None:
        address = running_server(repository)
        if address is None:
            raise ServerError(f"no server serves {repository}", hint=f"start one: tritonforge serve {repository}")
        return address.http_url if protocol == "http" else address.grpc_url
    if url is None:
        return DEFAULT_URLS[protocol or "grpc"]
    scheme, separator, _ = url.partition("://")
    if not separator:
        return f"{protocol or 'grpc'}://{url}"
    if protocol is not None and protocol != scheme.removesuffix("s"):
        raise click.UsageError(f"--protocol {protocol} contradicts --url {url}")
    return url
