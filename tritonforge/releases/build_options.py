"""Options of trtllm-build, release by release: which there are, what they take, and how well that is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tritonforge.releases.files import read_data
from tritonforge.releases.table import Release, all_lines, covers, spans, version_key

OptionType = Literal["int", "text", "choice", "switch", "flag", "list"]
Evidence = Literal["run", "preview", "read", "inferred"]
Value = bool | int | str | Sequence[str]
SWITCH = ("enable", "disable")
EVIDENCE: Mapping[Evidence, str] = {
    "run": "the release's own argument parser was run",
    "preview": "the argument parser of a preview of this line was run (0.16.0.dev2024112600), not that of the release",
    "read": "read in upstream's source of that time; which release it went into is not certain",
    "inferred": "nothing of this line was seen; concluded from those beside it",
}


@dataclass(frozen=True, slots=True)
class BuildOption:
    """One option as one release takes it.

    Args:
        name: Without the dashes.
        type: int, text, choice (one of `choices`), switch (enable or disable), flag (no value) or list.
        choices: The values that it takes; empty when any of its type will do.
        default: What the release takes without it; None when that follows from other things or is not known.
        default_either: Possible defaults where it is not known which one the release has.
        aliases: Other names that the release takes for it.
        evidence: run (the release's own parser), preview (that of a preview), read (source of that time) or inferred.
        note: What else there is to know.
        key: Key of forge.yaml that speaks of it, when there is one.
        reserved: Why a specification cannot give it; None when it can.
        now: The option that has taken its place.
    """

    name: str
    type: OptionType
    choices: tuple[int | str, ...]
    default: int | str | None
    default_either: tuple[int | str, ...]
    aliases: tuple[str, ...]
    evidence: Evidence
    note: str | None
    key: str | None
    reserved: str | None
    now: str | None

    def problem_with(self, value: object) -> str | None:
        """What is wrong with a value, as a clause after "is ...;", or None when the release takes it."""
        allowed = SWITCH if self.type == "switch" else self.choices
        if self.type == "flag" or (self.type == "switch" and isinstance(value, bool)):
            return None if isinstance(value, bool) else "expected true or false: the option takes no value"
        if self.type == "list":
            items = value if isinstance(value, (list, tuple)) else [value]
            right = bool(items) and all(_is_word(item) for item in items)
            right = right and all(item in allowed for item in items if allowed)
        elif self.type == "int":
            right = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            right = right and (not allowed or value in allowed)
        else:
            right = _is_word(value) and (not allowed or value in allowed)
        return None if right else f"expected {self._expected(allowed)}"

    def words(self, value: Value) -> tuple[str, ...]:
        """The option with a value that `problem_with` lets pass, as trtllm-build reads it; none for a flag off."""
        name = f"--{self.name}"
        if self.type == "flag":
            return (name,) if value else ()
        if isinstance(value, bool):
            return (name, "enable" if value else "disable")
        if isinstance(value, (int, str)):
            return (name, str(value))
        return (name, *value)

    def _expected(self, allowed: Sequence[int | str]) -> str:
        if allowed:
            return f"one of {', '.join(map(str, allowed))}"
        if self.type == "int":
            return "a whole number from 0"
        kind = "text, or a list of texts" if self.type == "list" else "text"
        return f"{kind}, without control characters and a '-' at its start"


def _is_word(value: object) -> bool:
    """Whether a command line can carry a value: one that begins with a dash would be read as an option of its own."""
    return isinstance(value, str) and value != "" and value.isprintable() and not value.startswith("-")


def build_options(release: Release) -> Mapping[str, BuildOption]:
    """Every option that the release's trtllm-build has, by name, in the order of the data.

    Args:
        release: A release of the table.
    """
    data = read_data("build_options")
    found = ((name, row) for name, rows in data["options"].items() for row in rows if covers(row, release.line))
    return {name: _option(name, row, data, release.line) for name, row in found}


def lines_with_option(name: str) -> tuple[str, ...]:
    """The lines that have an option, oldest first."""
    rows = read_data("build_options")["options"].get(name, ())
    return tuple(line for line in all_lines() if any(covers(row, line) for row in rows))


def where_option_exists(name: str) -> str:
    """The lines that have an option, in words: ``0.12 to 0.16``, ``0.11 on``; empty when no line has it."""
    lines, have = all_lines(), lines_with_option(name)
    return "all" if have == lines else spans(have)


def where_value_exists(name: str, value: object) -> str:
    """The lines whose option takes a value, in words: ``0.17, 0.18``; empty when no line takes it."""
    data = read_data("build_options")
    takes = [
        line
        for line in all_lines()
        for row in data["options"].get(name, ())
        if covers(row, line) and _option(name, row, data, line).problem_with(value) is None
    ]
    return ", ".join(takes)


def what_replaced(name: str) -> str | None:
    """The option that took the place of one that is gone, or of another name for it; None when there is none."""
    data = read_data("build_options")
    renamed = data["renamed"].get(name)
    alias: str | None = data["aliases"].get(name)
    return str(renamed["now"]) if renamed else alias


def all_option_names() -> tuple[str, ...]:
    """Names of the options of all releases."""
    return tuple(read_data("build_options")["options"])


def _option(name: str, row: Mapping[str, Any], data: Mapping[str, Any], line: str) -> BuildOption:
    choices = row.get("choices", ())
    renamed = data["renamed"].get(name)
    gone = renamed is not None and version_key(line) >= version_key(renamed["since"])
    return BuildOption(
        name=name,
        type=row["type"],
        choices=tuple(data["choices"][choices] if isinstance(choices, str) else choices),
        default=row.get("default"),
        default_either=tuple(row.get("default_either", ())),
        aliases=tuple(other for other, main in data["aliases"].items() if main == name),
        evidence=next(_evidence(data["evidence"], line), "inferred"),
        note=row.get("note"),
        key=data["keys"].get(name),
        reserved=data["reserved"].get(name),
        now=renamed["now"] if gone else None,
    )


def _evidence(ranges: Sequence[Mapping[str, Any]], line: str) -> Iterator[Evidence]:
    yield from (entry["is"] for entry in ranges if covers(entry, line))
