"""`tritonforge doctor`: what this machine can do, and how to fix the rest."""

from __future__ import annotations

from pathlib import Path

import click

from tritonforge.checks import FAIL, INFO, OK, WARN
from tritonforge.cli.output import json_option, print_json
from tritonforge.engine.tensorrt_llm.doctor import examine_builders
from tritonforge.server.doctor import examine

COLOURS = {OK: "green", INFO: "cyan", WARN: "yellow", FAIL: "red"}


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), default=Path(), help="Folder that will hold the models.")
@json_option
@click.pass_context
def command(context: click.Context, folder: Path, *, as_json: bool) -> None:
    """Check what this machine can do. The exit code is 1 when something that is needed does not work."""
    checks = [*examine(folder), *examine_builders()]
    failed = any(check.status == FAIL for check in checks)
    if as_json:
        print_json({"ok": not failed, "checks": checks})
    else:
        for check in checks:
            click.echo(f"{click.style(check.status.ljust(4), fg=COLOURS[check.status])}  {check.name}: {check.detail}")
            if check.fix:
                click.echo(f"      fix: {check.fix}")
    context.exit(1 if failed else 0)
