"""The base of every part of the specification, and the named types that its fields share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
MAX_NAME_LENGTH = 128
MAX_VERSION = 2**31 - 1  # a version travels as INT32 in requests and answers
MAX_TOKENS = 2**24  # far above any context length, and below what overflows INT32 when counts are added
MAX_PATH_LENGTH = 4096  # PATH_MAX of Linux


class ForgeModel(BaseModel):
    """A part of forge.yaml: frozen, unknown keys forbidden, no silent conversions (``"4"`` is not a number)."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A contradiction between several keys.

    Args:
        problem: What is wrong, with its value, and what was expected.
        at: Keys that lead from the model being validated to the key to change.
    """

    problem: str
    at: tuple[str | int, ...]


def refuse(broken: Iterable[BrokenRule]) -> None:
    """What a validator of several keys ends with, so that the reader can point at each key to change.

    Raises:
        PydanticCustomError: There is a broken rule; the error carries all of them as ``broken``.
    """
    rules = tuple(broken)
    if rules:
        text = "; ".join(f"{'.'.join(map(str, rule.at))} {rule.problem}".lstrip() for rule in rules)
        raise PydanticCustomError("broken_rules", "{text}", {"text": text, "broken": rules})


def check_name(name: str) -> str:
    """Refuse a name that is unsafe as a folder name or awkward in a URL.

    Raises:
        ValueError: The name has other characters than ASCII letters, digits, ``.``, ``_`` and ``-``, does not start
            with a letter or digit, or is longer than `MAX_NAME_LENGTH`.
    """
    if len(name) > MAX_NAME_LENGTH:
        raise ValueError(f"has {len(name)} characters; expected at most {MAX_NAME_LENGTH}")
    if re.fullmatch(NAME_PATTERN.strip("^$"), name) is None:
        raise ValueError("expected letters, digits, '.', '_' or '-' (ASCII), the first a letter or digit")
    return name


def check_path_text(path: str) -> str:
    """Refuse text that can never be a path.

    Raises:
        ValueError: The text is empty, too long, or has control characters.
    """
    if not path.strip():
        raise ValueError("expected a path, found empty text")
    if len(path) > MAX_PATH_LENGTH:
        raise ValueError(f"has {len(path)} characters; expected at most {MAX_PATH_LENGTH}")
    if not path.isprintable():
        raise ValueError("expected a path without line breaks and control characters")
    return path


ModelName = Annotated[
    str,
    AfterValidator(check_name),
    WithJsonSchema({"type": "string", "pattern": NAME_PATTERN, "maxLength": MAX_NAME_LENGTH}),
]
LocalPath = Annotated[
    str,
    AfterValidator(check_path_text),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_PATH_LENGTH}),
]
VersionNumber = Annotated[int, Field(ge=1, le=MAX_VERSION)]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
Count = Annotated[int, Field(ge=1, le=1024)]
Microseconds = Annotated[int, Field(ge=0, le=2**53)]  # as far as JSON numbers are exact
