"""`tritonforge inspect`: what a checkpoint is, and whether it is supported."""

from __future__ import annotations

from pathlib import Path

import click

from tritonforge.checkpoint.inspect import CheckpointInfo, inspect
from tritonforge.cli.output import json_option, plain, print_fields, print_json


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@json_option
def command(*, checkpoint: Path, as_json: bool) -> None:
    """Say what the Hugging Face folder CHECKPOINT is, and whether it is supported."""
    info = inspect(checkpoint)
    if as_json:
        print_json(info)
    else:
        print_fields(_readable(info))


def _readable(info: CheckpointInfo) -> dict[str, object]:
    """The fields that are known, numbers grouped, the verdict last."""
    values = plain(info)
    shown: dict[str, object] = {}
    for name, value in values.items() if isinstance(values, dict) else ():
        if value is not None and name not in ("supported", "reasons", "engines"):
            shown[name] = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
    shown["supported"] = f"yes, by {' and '.join(info.engines)}" if info.supported else "no"
    for i, reason in enumerate(info.reasons, start=1):
        shown[f"reason {i}"] = reason
    return shown
