"""What the tags of tensorrtllm_backend say, from a table of their own: not the one that the package renders from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("tensorrtllm_backend.tsv")
# Types that upstream's templates leave to the user, and what is written for them.
CHOSEN = {"${logits_datatype}": "TYPE_FP32", "${encoder_input_features_data_type}": "TYPE_FP16"}


@dataclass(frozen=True)
class Row:
    """One tensor or parameter of one tag; of a parameter, `type` is the template's text."""

    what: str
    name: str
    type: str
    dims: tuple[int, ...]
    optional: bool
    ragged: bool
    reshaped: bool


def tags() -> list[str]:
    """Every tag that the table knows, oldest first."""
    named = {field for line in _lines() for field in line[2:4]}
    return sorted(named, key=_number)


def rows(tag: str, what: str) -> dict[str, Row]:
    """Inputs, outputs or parameters (`what`) of a tag, by name."""
    found = {}
    for kind, name, first, last, type_, dims, marks in _lines():
        if kind == what and _number(first) <= _number(tag) <= _number(last):
            assert name not in found
            sizes = tuple(int(size) for size in dims.split(",")) if dims else ()
            has = marks.split()
            kind_of = CHOSEN.get(type_, type_) if what != "parameter" else type_
            found[name] = Row(what, name, kind_of, sizes, "optional" in has, "ragged" in has, "reshape" in has)
    return found


def _lines() -> Iterator[list[str]]:
    for line in FILE.read_text().splitlines():
        if not line.startswith("#"):
            fields = line.split("\t")
            yield fields + [""] * (7 - len(fields))


def _number(tag: str) -> tuple[int, ...]:
    return tuple(int(part) for part in tag.split("."))
