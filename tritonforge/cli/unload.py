"""`tritonforge unload`: unload a model from a running server."""

from __future__ import annotations

import click

from tritonforge.cli.connection import server_options
from tritonforge.cli.output import json_option, print_json
from tritonforge.client import Client
from tritonforge.errors import ModelNotFound


@click.command()
@click.argument("model")
@click.option("--dependents", is_flag=True, help="Also unload the models that an ensemble consists of.")
@server_options(default_timeout_s=60.0)
@json_option
def command(client: Client, model: str, *, dependents: bool, as_json: bool) -> None:
    """Unload MODEL from a running server. Requests under way still finish."""
    if not any(known.name == model for known in client.models()):
        # Triton calls it a success to unload what it does not have.
        raise ModelNotFound(f"there is no model {model!r} to unload", server=client.url, status="")
    client.unload(model, unload_dependents=dependents)
    if as_json:
        print_json({"model": model, "unloaded": True})
    else:
        click.echo(f"{model}: unloaded")
