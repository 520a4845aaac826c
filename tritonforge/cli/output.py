"""How results reach the user: JSON on standard output for programs, tables for people; progress on standard error."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonforge.cli.printable import printable

_WIDE = 10_000

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def print_json(value: object) -> None:
    """Print a result (dataclass, mapping, list or plain value) as one JSON document on standard output."""
    text = json.dumps(plain(value), indent=2, ensure_ascii=False)
    # JSON leaves some controls of a terminal as they are; only strings can hold them, where an escape says the same.
    click.echo("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def plain(value: object) -> object:
    """The JSON form of a result: dataclasses become objects, paths and enums become strings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return value


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """Print rows as a table on standard output."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=_WIDE)  # a pipe or a file has no width to fit into
    table = Table(title=None if title is None else Text(printable(title)), title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")  # a name that was cut cannot be copied
    # What a row is called stays in one piece, where that leaves most of the width to the rest.
    table.columns[0].no_wrap = max((len(str(row[0])) for row in rows), default=0) <= console.width // 2
    for row in rows:
        table.add_row(*(Text("" if cell is None else printable(str(cell), kept="\n")) for cell in row))
    console.print(table)


def print_fields(fields: Mapping[str, object]) -> None:
    """Print name and value pairs, one a line, with the values aligned."""
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        print_line(f"{name.ljust(width)}  {value}")


def print_line(text: str) -> None:
    """One line on standard output."""
    click.echo(printable(text))


def say(message: str) -> None:
    """One line of progress on standard error."""
    click.echo(printable(message), err=True)
