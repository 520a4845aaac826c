"""`tritonforge load`: load a model on a running server."""

from __future__ import annotations

from pathlib import Path

import click

from tritonforge.cli.connection import server_options
from tritonforge.cli.output import json_option, print_json, print_line, say
from tritonforge.client import Client
from tritonforge.pipeline.load import load


@click.command()
@click.argument("model")
@server_options(default_timeout_s=300.0, at_both=True)
@json_option
def command(client: Client, model: str, *, as_json: bool) -> None:
    """Load MODEL on a running server, or load it again after its folder has changed.

    An engine that another release or another GPU needs is refused before it is loaded. The repository of a server that
    was started here is found; give that of any other with --repository, beside --url.
    """
    repository: Path | None = click.get_current_context().params["repository"]
    load(client, model, repository=repository, on_event=say)
    versions = [entry for entry in client.models() if entry.name == model]
    if as_json:
        print_json({"model": model, "versions": versions})
        return
    for entry in versions:
        print_line(f"{model} version {entry.version}: {entry.state} {entry.reason.strip()}".rstrip())
