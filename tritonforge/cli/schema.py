"""`tritonforge schema`: what forge.yaml may hold, for editors and programs."""

from __future__ import annotations

import click

from tritonforge.cli.output import json_option, print_json
from tritonforge.spec.schema import json_schema


@click.command()
@json_option
def command(*, as_json: bool) -> None:  # noqa: ARG001 - the schema is JSON in either case
    """Print the JSON Schema of forge.yaml, by which editors complete and check it.

    Save it beside forge.yaml as forge.schema.json and let the first line of forge.yaml be
    "# yaml-language-server: $schema=forge.schema.json".
    """
    print_json(json_schema())
