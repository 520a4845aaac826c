"""The options by which commands find a server: all read TRITONFORGE_URL when --url is not given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
from click.core import ParameterSource

from tritonforge.client import Client
from tritonforge.client.address import parse_address
from tritonforge.errors import ClientError, ServerError
from tritonforge.server.state import running_server

URL_VARIABLE = "TRITONFORGE_URL"
DEFAULT_URLS = {"grpc": "localhost:8001", "http": "http://localhost:8000"}

R = TypeVar("R")


def server_options(
    default_timeout_s: float, *, at_both: bool = False
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Adds the options that name a server; the command gets a connected `client`.

    Args:
        default_timeout_s: Deadline of a call when --timeout is not given.
        at_both: Whether --repository beside --url is the repository of the server at that address.
    """

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @click.option(
            "--url",
            envvar=URL_VARIABLE,
            show_envvar=True,
            help="Address of the server: localhost:8001 or http://localhost:8000.",
        )
        @click.option("--protocol", type=click.Choice(["grpc", "http"]), help="Protocol, when --url does not say.")
        @click.option(
            "--repository", type=click.Path(path_type=Path), help="Ask the server that serves this repository."
        )
        @click.option(
            "--timeout",
            "timeout_s",
            type=float,
            default=default_timeout_s,
            show_default=True,
            help="Seconds until the command gives up.",
        )
        @functools.wraps(command)
        def with_client(
            *args: object,
            url: str | None,
            protocol: str | None,
            repository: Path | None,
            timeout_s: float,
            **options: object,
        ) -> R:
            source = click.get_current_context().get_parameter_source("url")
            if repository is not None and source is ParameterSource.ENVIRONMENT:
                url = None  # what was asked for just now counts more
            asked = None if at_both and url is not None else repository
            with Client(choose_url(url, protocol, asked), timeout_s=timeout_s) as client:
                return command(*args, client=client, **options)

        return with_client

    return decorate


def _require_grpc(_context: click.Context, _parameter: click.Parameter, url: str | None) -> str | None:
    """Refuse an address of another protocol when the command line is read, before anything is done."""
    if url is None:
        return None
    try:
        address = parse_address(url)
    except ClientError as error:
        raise click.BadParameter(error.message) from error
    if address.protocol != "grpc":
        raise click.BadParameter(f"{url} is the HTTP endpoint; expected the server's gRPC address, as localhost:8001")
    return url


grpc_url_option = click.option(
    "--url",
    envvar=URL_VARIABLE,
    show_envvar=True,
    callback=_require_grpc,
    help="gRPC address of the server that takes the change; the one that serves the repository when left out.",
)
"""For commands that change a repository, and the server that serves it."""


def server_of(repository: Path, url: str | None) -> str | None:
    """The server of a repository as a gRPC address: the one given, else the one that runs here, else None."""
    if url is not None:
        return url
    address = running_server(repository)
    return None if address is None else address.grpc_url


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
