"""A parameter of the `tensorrtllm` backend, and what its value may be. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# As C++ reads them: Python would take 1_000, other scripts' digits and the names of infinity for numbers, too.
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
ParameterValue = str | int | float | bool | Sequence[int]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that the backend reads from the model's config.

    Args:
        name: Its key.
        type: ``text``, ``int``, ``float``, ``bool``, ``choice``, ``ints`` (a list) or ``device_ids`` (lists).
        meaning: What it does, for people.
        default: What the backend takes when it is not written, in words; None when it cannot be left out.
        value: What is always written; None when that depends.
        source: Where its value comes from: a key of forge.yaml or the engine; None when only
            ``runtime.parameters`` sets it.
        choices: Values of a ``choice``.
        minimum: Smallest number, included; None for any.
        above: Number that must be exceeded; None for any.
        maximum: Largest number, included; None for any.
        must_exist: The backend reads it without a fallback, so it is written even when empty.
        needs: Another parameter without which it does nothing; None when there is none.
    """

    name: str
    type: str
    meaning: str
    default: str | None = None
    value: str | None = None
    source: str | None = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    must_exist: bool = False
    needs: str | None = None


def parameter_text(value: ParameterValue) -> str:
    """A value as the backend reads it: lower-case flags, lists with commas."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    return ",".join(str(item) for item in value)


def expected_instead(parameter: Parameter, text: str) -> str | None:
    """What was expected instead of a value; None when the value will do.

    Args:
        parameter: The parameter.
        text: The value as the backend reads it.
    """
    match parameter.type:
        case "bool":
            return None if text in {"true", "false"} else "true or false"
        case "choice":
            return None if text in parameter.choices else f"one of {', '.join(parameter.choices)}"
        case "int" | "float":
            return None if _is_number(parameter, text, whole=parameter.type == "int") else _number_words(parameter)
        case "ints":
            is_list = all(_is_number(parameter, item.strip(), whole=True) for item in text.split(","))
            return None if is_list else "whole numbers, separated by commas"
        case "device_ids":
            is_list = all(item.isascii() and item.strip().isdecimal() for item in re.split("[,;]", text))
            return None if is_list else "numbers, separated by commas or semicolons"
        case _:
            return None if text.strip() and text.isprintable() else "some text without control characters"


def _is_number(parameter: Parameter, text: str, *, whole: bool) -> bool:
    if not (_WHOLE if whole else _NUMBER).fullmatch(text):
        return False
    number = int(text) if whole else float(text)
    return (
        abs(number) < 2**63
        and (parameter.minimum is None or number >= parameter.minimum)
        and (parameter.above is None or number > parameter.above)
        and (parameter.maximum is None or number <= parameter.maximum)
    )


def _number_words(parameter: Parameter) -> str:
    bounds = [
        f"{words} {bound:g}"
        for words, bound in (
            ("at least", parameter.minimum),
            ("above", parameter.above),
            ("at most", parameter.maximum),
        )
        if bound is not None
    ]
    return " ".join(["a whole number" if parameter.type == "int" else "a number", " and ".join(bounds)]).strip()
