"""Pydantic's errors in words for the person who wrote the file. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tritonforge.errors import did_you_mean
from tritonforge.spec.document import Document, KeyPath, Problem, is_plain_scalar
from tritonforge.spec.schema import homes_of, place_of

MAX_SHOWN = 60


def problems_of(error: ValidationError, document: Document) -> list[Problem]:
    """All problems that pydantic found, except with values that could not be read in the first place.

    Args:
        error: What validation raised.
        document: The file that was validated.
    """
    details = [detail for detail in error.errors(include_url=False) if not _is_echo(detail)]
    problems = [problem for detail in details for problem in _problems(detail, document)]
    return [problem for problem in problems if problem.path not in document.unread]


def dotted(path: KeyPath) -> str:
    """A path as people write it, for example ``models[0].versions.1.engine.kind``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            plain = step.isprintable() and 0 < len(step) <= MAX_SHOWN and not set(step) & set(" .[]:")
            text += ("." if text else "") + (step if plain else shown(step))
    return text


def shown(value: object) -> str:
    """A value as it would be written in the file, shortened."""
    match value:
        case None:
            return "empty"
        case bool():
            return "true" if value else "false"
        case Mapping():
            return "a mapping" if value else "an empty mapping"
        case list() | tuple():
            return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def _is_echo(detail: ErrorDetails) -> bool:
    if detail["type"] == "too_short":  # an entry that failed is not counted: the list is not short, its entry is wrong
        return bool(len(detail["input"]) >= detail["ctx"]["min_length"])
    return detail["type"] == "default_factory_not_called"  # the fields that it needs failed, and say so themselves


def _problems(detail: ErrorDetails, document: Document) -> Iterator[Problem]:
    if detail["type"] != "broken_rules":
        yield _problem(detail, document)
        return
    for rule in detail["ctx"]["broken"]:
        path = place_of((*detail["loc"], *rule.at)).path
        yield Problem(path, document.line_of(path), rule.problem)


def _problem(detail: ErrorDetails, document: Document) -> Problem:
    place = place_of(detail["loc"])
    path = place.path
    context = detail.get("ctx", {})
    value = detail["input"]
    hint: str | None = None
    match detail["type"]:
        case "missing":
            text = f"is missing; expected: {_as_clause(place.description)}"
        case "extra_forbidden" | "invalid_key":
            text, hint = _unknown_key(str(path[-1]), place.siblings)
        case "value_error":
            text = f"is {shown(value)}; {context['error']}"
        case "literal_error":
            text, hint = _one_of(value, context["expected"].replace(" or ", ", "))
        case "union_tag_invalid":
            path = (*path, "kind")
            text, hint = _one_of(value["kind"], context["expected_tags"])
        case "union_tag_not_found":
            path = (*path, "kind")
            text = f"is missing; expected {_listed(place.kinds)}"
        case _:
            what = "the key is" if detail["loc"][-1] == "[key]" else "is"
            text = f"{what} {shown(value)}; expected {_expectation(detail)}"
    return Problem(path, document.line_of(path), text, hint)


def _unknown_key(key: str, siblings: Sequence[str]) -> tuple[str, str | None]:
    """What is wrong with an unknown key, and the nearest known one: misspelt here, or at home elsewhere."""
    hint = did_you_mean(key, siblings)
    if hint is None and (homes := homes_of(key)):
        hint = f"{key!r} belongs to {' or '.join(homes)}"
    return f"is not a known key; expected one of {', '.join(siblings)}", hint


def _one_of(value: object, choices: str) -> tuple[str, str | None]:
    """What is wrong with a value outside a fixed choice, which pydantic gives as quoted words with commas."""
    known = [choice.strip("'") for choice in choices.split(", ")]
    hint = did_you_mean(value, known) if isinstance(value, str) else None
    return f"is {shown(value)}; expected {_listed(known)}", hint


def _bound(bound: object) -> object:
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _as_clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _expectation(detail: ErrorDetails) -> str:
    """What was expected in place of a value, from pydantic's kind of error; its own words for a kind not met yet."""
    expectations: dict[str, str] = {
        "int_type": "a whole number",
        "float_type": "a number",
        "finite_number": "a finite number",
        "bool_type": "true or false",
        "string_type": "text",
        "string_unicode": "text of whole Unicode characters",
        "string_too_short": "text that is not empty",
        "tuple_type": "a list",
        "dict_type": "keys with values (a mapping)",
        "model_type": "keys with values (a mapping)",
        "model_attributes_type": "keys with values (a mapping)",
        "greater_than": "more than {gt}",
        "greater_than_equal": "at least {ge}",
        "less_than": "less than {lt}",
        "less_than_equal": "at most {le}",
        "too_short": "at least {min_length} entry",
    }
    kind, value = detail["type"], detail["input"]
    bounds = {name: _bound(bound) for name, bound in detail.get("ctx", {}).items()}
    text = expectations[kind].format_map(bounds) if kind in expectations else detail["msg"]
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        return f"{text}: put it in quotes"
    if kind in {"int_type", "float_type", "bool_type"} and isinstance(value, str) and is_plain_scalar(value):
        return f"{text}, without quotes"
    return text
