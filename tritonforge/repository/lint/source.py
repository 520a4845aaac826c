"""Where things stand in a config.pbtxt. Pure.

Protobuf's own parser says what a config means but not on which line. This reader knows no schema, accepts any text, and
gives each field's place; it is used for places and names only, never for values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

TOKEN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)
  | (?P<placeholder>\$\{[^}\n]*\}|\{\{[^}\n]*\}\}|%\([\w\ ]+\)s|@\w+@|<[A-Za-z][^<>\n:{}"']*>)
  | (?P<word>[A-Za-z0-9_.+\-]+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
OPENING = {"{": "}", "<": ">"}
CLOSING = frozenset(OPENING.values())
MAX_DEPTH = 100  # protobuf's own limit on nested messages


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Args:
        kind: ``string``, ``word``, ``placeholder`` (of a template that was not filled) or ``other`` (a character).
        text: As written, with quotes.
        line: Counted from 1.
        column: Counted from 1.
    """

    kind: str
    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of a field: a scalar, or a message with fields of its own.

    Args:
        line: Line of the field's name, or of the value itself inside a list.
        scalar: The token of a scalar; None for a message.
        fields: Fields of a message.
    """

    line: int
    scalar: Token | None
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One field as written.

    Args:
        name: Its name.
        line: Counted from 1.
        column: Counted from 1.
        entries: Its values; several when a list is given.
    """

    name: str
    line: int
    column: int
    entries: tuple[Entry, ...]


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of a text, comments and white space left out."""
    line, line_start = 1, 0
    for match in TOKEN.finditer(text):
        kind, part = match.lastgroup or "other", match.group()
        if kind != "space":
            yield Token(kind, part, line, match.start() - line_start + 1)
        newlines = part.count("\n")
        if newlines:
            line += newlines
            line_start = match.start() + part.rindex("\n") + 1


def read_fields(text: str) -> tuple[Field, ...]:
    """The fields of a config, as far as they can be made out; never fails."""
    return _Reader(list(tokenize(text))).fields(depth=0)


def find_entries(fields: Sequence[Field], name: str) -> list[Entry]:
    """All values of a field, whether written as a list or by repeating its name."""
    return [entry for field in fields if field.name == name for entry in field.entries]


def find_line(fields: Sequence[Field], path: Sequence[str | int]) -> int | None:
    """Line of the deepest part of a path that is written.

    Args:
        fields: Fields of the config.
        path: Names, each optionally followed by an index into a repeated field: ``("input", 2, "dims")``.
    """
    line: int | None = None
    position = 0
    while position < len(path):
        name = str(path[position])
        index = path[position + 1] if position + 1 < len(path) else 0
        step = 2 if isinstance(index, int) and position + 1 < len(path) else 1
        entries = find_entries(fields, name)
        place = index if isinstance(index, int) else 0
        if place >= len(entries):
            return line
        line, fields = entries[place].line, entries[place].fields
        position += step
    return line


class _Reader:
    """Recursive descent over tokens; whatever does not fit is skipped."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def fields(self, *, depth: int) -> tuple[Field, ...]:
        found = []
        while (token := self._peek()) is not None:
            if token.text in CLOSING and depth > 0:
                break
            self._next += 1
            if token.kind == "word":
                found.append(Field(token.text, token.line, token.column, tuple(self._value(token.line, depth))))
        return tuple(found)

    def _value(self, line: int, depth: int) -> Iterator[Entry]:
        if self._is_next(":"):
            self._next += 1
        if self._is_next("["):
            self._next += 1
            yield from self._list(depth)
        elif (entry := self._single(line, depth)) is not None:
            yield entry

    def _list(self, depth: int) -> Iterator[Entry]:
        while (token := self._peek()) is not None:
            if token.text == "]":
                self._next += 1
                return
            if token.text in CLOSING:
                return
            entry = self._single(token.line, depth)
            if entry is not None:
                yield entry
            else:
                self._next += 1

    def _single(self, line: int, depth: int) -> Entry | None:
        token = self._peek()
        if token is None:
            return None
        if token.text in OPENING and depth < MAX_DEPTH:
            self._next += 1
            inner = self.fields(depth=depth + 1)
            if self._is_next(OPENING[token.text]):
                self._next += 1
            return Entry(line, None, inner)
        if token.kind in {"word", "string", "placeholder"}:
            self._next += 1
            while token.kind == "string" and (more := self._peek()) is not None and more.kind == "string":
                self._next += 1  # adjacent strings are one value
            return Entry(line, token, ())
        return None

    def _peek(self) -> Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _is_next(self, text: str) -> bool:
        token = self._peek()
        return token is not None and token.kind == "other" and token.text == text
