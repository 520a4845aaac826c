"""Options that go to an engine as they are written, and those that no version may pass. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema

from tritonforge.spec.base import MAX_NAME_LENGTH, BrokenRule

OPTION_PATTERN = r"^[a-z][a-z0-9_]*$"

RUNS_CODE = "it would run code that is not the engine's own, and a checkpoint's code is never run"
OTHER_MODEL = "the checkpoint in the version folder is what is served, with nothing downloaded beside it"
SECRET = "what is rendered can be read by everybody who reads the repository"
ONLY_TEXT = "the gateway sends text and expects text"
DOWNLOADED = "it names a model that the server would download; expected its folder, as the server sees it"


def _check_name(name: str) -> str:
    if len(name) > MAX_NAME_LENGTH or re.fullmatch(OPTION_PATTERN.strip("^$"), name) is None:
        raise ValueError("expected the name of an option: small letters, digits and '_' (ASCII), the first a letter")
    return name


def _check_json(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("expected text of whole Unicode characters") from None
    except (TypeError, ValueError, RecursionError):
        raise ValueError(
            "expected a value that JSON can hold: text, finite numbers, true, false, lists, mappings"
        ) from None
    return value


# Any, because each engine has types of its own for its options; what cannot be written as JSON is refused.
OptionValue = Annotated[
    Any,
    AfterValidator(_check_json),
    WithJsonSchema({"type": ["string", "number", "boolean", "array", "object", "null"]}),
]
PassedOptions = Annotated[
    dict[Annotated[str, AfterValidator(_check_name)], OptionValue],
    Field(json_schema_extra={"propertyNames": {"pattern": OPTION_PATTERN}}),
]


@dataclass(frozen=True, slots=True)
class OptionRules:
    """Which options of an engine cannot be passed on.

    Args:
        field: Key of the specification that holds the options.
        written_as: The key that says the same, by the option's name.
        refused: Why an option is refused, by its name.
        hostile: Options that make the engine run foreign code; refused inside another option's value, too.
        located: Options that name a further model, by its folder alone; likewise.
    """

    field: str
    written_as: Mapping[str, str]
    refused: Mapping[str, str]
    hostile: frozenset[str]
    located: frozenset[str] = frozenset()

    def broken(self, options: Mapping[str, Any]) -> Iterator[BrokenRule]:
        """Every option that cannot be passed on."""
        for name, value in options.items():
            if name in self.written_as:
                yield BrokenRule(f"has a key of its own; expected {self.written_as[name]}", at=(self.field, name))
            if name in self.refused:
                yield self._refusal((name,), self.refused[name])
            for path, inner in _parts(value, (name,)):
                if _plain(path[-1]) in self.hostile:
                    yield self._refusal(path, RUNS_CODE)
                elif _is_elsewhere(inner) and path[-1] in self.located and name not in self.refused:
                    yield BrokenRule(f"is {inner!r}: {DOWNLOADED}", at=(self.field, *path))

    def _refusal(self, path: tuple[str, ...], reason: str) -> BrokenRule:
        return BrokenRule(f"cannot be passed on: {reason}; expected it left out", at=(self.field, *path))


def _parts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The option's own path and value, and those of every key inside; entries of lists go by the list's path."""
    yield path, value
    below = _read(value) if isinstance(value, str) else value
    if isinstance(below, dict):
        for key, inner in below.items():
            yield from _parts(inner, (*path, str(key)))
    if isinstance(below, list):
        for inner in below:
            yield from _parts(inner, path)


def _read(text: str) -> Any:
    """What a text holds as JSON, as engines take mappings on their command lines; None for any other text."""
    try:
        return json.loads(text) if text.lstrip().startswith(("{", "[")) else None
    except (ValueError, RecursionError):
        return None


def _is_elsewhere(model: Any) -> bool:
    """Whether a model is named otherwise than by its folder; ``[ngram]`` is vLLM's word for none."""
    return isinstance(model, str) and not model.startswith(("/", "["))


def _plain(name: str) -> str:
    """A name as Python spells it, for one that is spelled as on a command line."""
    return name.lower().replace("-", "_").strip("_")
