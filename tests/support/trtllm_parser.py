"""A parser of trtllm-build's command line, made from what is known of a release's own, to judge our argv by."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tritonforge.releases.build_options import SWITCH, build_options
from tritonforge.releases.table import Release

FACTS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "releases" / "trtllm_build_parsers.json").read_text())
# The parser that was run for each line.
RUN = {".".join(name.split(".")[:2]): name for name in FACTS["releases"]}


class RefusedArguments(Exception):
    """The parser does not take a command line; the message is its own."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RefusedArguments(message)


def parse(release: Release, argv: Sequence[str]) -> argparse.Namespace:
    """What the release's trtllm-build understands, or RefusedArguments.

    Lines whose own parser was run are judged by that, not by our data.
    """
    parser = _Parser(allow_abbrev=False)
    for names, settings in _run(RUN[release.line]) if release.line in RUN else _known(release):
        parser.add_argument(*(f"--{name}" for name in names), **settings)
    return parser.parse_args(list(argv))


def run_options(name: str) -> dict[str, dict[str, Any]]:
    """Option → its facts, for one of the parsers that were run."""
    order = FACTS["releases"].index
    return {
        option: row
        for option, rows in FACTS["options"].items()
        for row in rows
        if order(row["from"]) <= order(name) <= order(row["to"])
    }


def _run(name: str) -> Iterator[tuple[list[str], dict[str, Any]]]:
    for option, row in run_options(name).items():
        settings: dict[str, Any] = {"default": row["default"]}
        if row.get("flag"):
            settings["action"] = "store_true"
        else:
            settings["type"] = int if row.get("type") == "int" else str
            settings["choices"] = row.get("choices")
            settings["nargs"] = row.get("nargs")
        if option == "kv_cache_type":  # an enumeration, whose members the facts do not list
            settings["choices"] = ["continuous", "paged", "disabled"]
        yield [option, *row.get("aliases", [])], settings


def _known(release: Release) -> Iterator[tuple[list[str], dict[str, Any]]]:
    for option in build_options(release).values():
        settings: dict[str, Any] = {"default": option.default}
        if option.type == "flag":
            settings["action"] = "store_true"
        else:
            choices = SWITCH if option.type == "switch" else option.choices
            settings["type"] = int if option.type == "int" else str
            settings["choices"] = choices or None
            settings["nargs"] = "+" if option.type == "list" else None
        yield [option.name, *option.aliases], settings
