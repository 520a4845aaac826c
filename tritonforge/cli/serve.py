"""`tritonforge serve`: run Triton on a model repository until it is stopped."""

from __future__ import annotations

from pathlib import Path

import click

from tritonforge.cli.output import json_option, print_json, say
from tritonforge.cli.signals import until_stopped
from tritonforge.pipeline.serve import serve
from tritonforge.server import RunningServer, ServerOptions


@click.command()
@click.argument("repository", type=click.Path(path_type=Path))
@click.option(
    "--launcher",
    type=click.Choice(["embedded"]),
    default="embedded",
    show_default=True,
    expose_value=False,
    help="How Triton is started.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--grpc-port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="gRPC port; 0 takes a free one."
)
@click.option(
    "--http-port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="HTTP port; 0 takes a free one."
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=8002,
    show_default=True,
    help="Port of /metrics; 0 takes a free one.",
)
@click.option("--model", "models", multiple=True, help="Model to load; can be repeated. Without it all are loaded.")
@click.option(
    "--ready-timeout",
    "ready_timeout_s",
    type=float,
    default=300.0,
    show_default=True,
    help="Seconds to wait until every model is ready.",
)
@click.option(
    "--exit-timeout",
    "exit_timeout_s",
    type=float,
    default=30.0,
    show_default=True,
    help="Seconds that requests under way get to finish.",
)
@click.option("--log", type=click.Path(path_type=Path), help="Log file; without it one in REPOSITORY.forge/logs.")
@click.option("--log-verbose", type=click.IntRange(0), default=0, help="How much Triton logs; 0 is the least.")
@click.option(
    "--cache-folder",
    "cache",
    type=click.Path(path_type=Path),
    envvar="TRITONFORGE_CACHE",
    help="Folder for Triton's unpacked backend; without it ~/.cache/tritonforge.",
)
@json_option
def command(repository: Path, models: tuple[str, ...], *, as_json: bool, **chosen: object) -> None:
    """Run Triton on REPOSITORY until Ctrl-C or SIGTERM. Requests under way still finish."""
    options = ServerOptions(models=models or None, **chosen)  # type: ignore[arg-type]  # click has checked the types
    with until_stopped(), serve(repository, options=options, on_event=say) as server:
        show(server, as_json=as_json)
        server.wait()


def show(server: RunningServer, *, as_json: bool) -> None:
    """Say that the server is ready, and where."""
    if as_json:
        fields = ("grpc_url", "http_url", "metrics_url", "pid", "log", "models", "ready_after_s")
        print_json({name: getattr(server, name) for name in fields})
        return
    click.echo(f"ready after {server.ready_after_s:.1f} s: gRPC {server.grpc_url}  HTTP {server.http_url}")
    click.echo(f"models: {', '.join(server.models)}  log: {server.log}")
