"""`tritonforge load`: load a model on a running server."""

from __future__ import annotations

import click

from tritonforge.cli.connection import server_options
from tritonforge.cli.output import json_option, print_json, print_line
from tritonforge.client import Client


@click.command()
@click.argument("model")
@server_options(default_timeout_s=300.0)
@json_option
def command(client: Client, model: str, *, as_json: bool) -> None:
    """Load MODEL on a running server, or load it again after its folder has changed."""
    client.load(model)
    versions = [entry for entry in client.models() if entry.name == model]
    if as_json:
        print_json({"model": model, "versions": versions})
        return
    for entry in versions:
        print_line(f"{model} version {entry.version}: {entry.state} {entry.reason.strip()}".rstrip())
