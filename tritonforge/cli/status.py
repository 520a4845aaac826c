"""`tritonforge status`: the models of a running server."""

from __future__ import annotations

import click

from tritonforge.cli.connection import server_options
from tritonforge.cli.output import json_option, print_json, print_table
from tritonforge.client import Client
from tritonforge.client.status import read_status

COLUMNS = ("model", "version", "state", "requests", "failed", "reason")


@click.command()
@server_options(default_timeout_s=10.0)
@json_option
def command(client: Client, *, as_json: bool) -> None:
    """Show the models of a running server, their states and counters."""
    status = read_status(client)
    if as_json:
        print_json(status)
        return
    rows = [(m.name, m.version, m.state, m.requests, m.failures, m.reason.strip()) for m in status.models]
    state = "ready" if status.ready else "not ready"
    print_table(COLUMNS, rows, title=f"{status.name} {status.version} at {status.url}: {state}")
