"""`tritonforge traffic`: show or change how a model's traffic is split between its versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from tritonforge.cli.connection import grpc_url_option, server_of
from tritonforge.cli.output import json_option, print_json, print_table, say
from tritonforge.pipeline.together import served_apart
from tritonforge.pipeline.traffic import change_traffic
from tritonforge.repository.routes import Routes
from tritonforge.repository.traffic import read_routes


class VersionWeight(click.ParamType[tuple[int, float]]):
    """``VERSION=WEIGHT``, for example ``2=10``."""

    name = "version=weight"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, float]:
        """The pair, or a usage error that shows the form."""
        version, _, weight = str(value).partition("=")
        try:
            return int(version), float(weight)
        except ValueError:
            self.fail(f"{value!r} is not VERSION=WEIGHT, for example 2=10", param, ctx)


@click.command()
@click.argument("repository", type=click.Path(path_type=Path, file_okay=False))
@click.argument("model")
@click.argument("weights", type=VersionWeight(), nargs=-1, metavar="[VERSION=WEIGHT]...")
@grpc_url_option
@json_option
def command(
    repository: Path, model: str, weights: tuple[tuple[int, float], ...], url: str | None, *, as_json: bool
) -> None:
    """Show how the traffic of MODEL is split, or give its versions new weights.

    Versions that are not named get nothing: `traffic ./model_repository smollm2 1=95 2=5`.
    """
    if weights:
        server = server_of(repository, url)
        routes = change_traffic(repository, model, _by_version(weights), server=server, on_event=say)
    else:
        routes = read_routes(repository, model)
        if apart := served_apart(repository, model, [number for number, share in routes.shares.items() if share > 0]):
            say(f"warning: {apart}")
    if as_json:
        print_json({"model": model, "weights": routes.weights, "shares": routes.shares})
    else:
        _show(model, routes)


def _by_version(weights: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Weight by version; one that is named twice is a mistake, not a correction."""
    named = dict(weights)
    if len(named) < len(weights):
        twice = next(number for number, count in Counter(number for number, _ in weights).items() if count > 1)
        raise click.UsageError(f"version {twice} is given more than one weight")
    return named


def _show(model: str, routes: Routes) -> None:
    rows = [(number, f"{routes.weights[number]:g}", f"{share:.1%}") for number, share in routes.shares.items()]
    print_table(("version", "weight", "share"), rows, title=f"traffic of {model}")
