"""Typed reading of JSON objects that other programs wrote: unknown keys are ignored, wrong types name file and key."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from tritonforge.errors import CorruptFile
from tritonforge.formats.input_file import read_input

# Configurations have kilobytes, the index of the largest checkpoints some megabytes.
MOST_JSON_BYTES = 64 * 1024**2
_MOST_SHOWN = 80  # characters of a value in an error


def read_json_object(path: Path, *, most_bytes: int = MOST_JSON_BYTES) -> dict[str, object]:
    """The JSON object in a file.

    Args:
        path: The file.
        most_bytes: Largest size that is read.

    Raises:
        CheckpointNotFound: The file does not exist.
        CorruptFile: It is no regular file, too large, not UTF-8, not JSON, not an object, or has a key twice.
    """
    content = read_input(path, most_bytes=most_bytes)
    return parse_json_object(content.removeprefix(codecs.BOM_UTF8), path)  # some editors of Windows write the mark


def parse_json_object(text: bytes, path: Path, *, what: str = "") -> dict[str, object]:
    """The JSON object in `text`, which came from `path`; `what` names the part of the file in errors.

    Raises:
        CorruptFile: It is not UTF-8, not JSON, not an object, or has a key twice.
    """
    part = f"{what} is " if what else ""
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=_unique_pairs)
    except UnicodeDecodeError as error:
        raise CorruptFile(path, f"{part}not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise CorruptFile(path, f"{part}not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except _DuplicateKey as error:
        raise CorruptFile(path, f"{what or 'the file'} names {error.key!r} twice") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise CorruptFile(path, f"{part}not usable: {error}") from error
    except RecursionError as error:
        raise CorruptFile(path, f"{part}nested too deeply to be read") from error
    if not isinstance(value, dict):
        raise CorruptFile(path, f"{part}a JSON {type(value).__name__}; expected an object")
    return value


class _DuplicateKey(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKey(key)
        found[key] = value
    return found


class JsonFields:
    """The fields of one JSON object, read with a type and a range. A JSON null counts as absent.

    Args:
        values: The object.
        path: File that it came from, for errors.
        prefix: Dotted path of the object within the file, for errors.
    """

    def __init__(self, values: Mapping[str, object], path: Path, *, prefix: str = "") -> None:
        self.values = values
        self.path = path
        self._prefix = prefix

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def integer(self, key: str, default: int | None = None, *, least: int = 1, most: int | None = None) -> int:
        """A whole number from `least` to `most`. A float with no fraction counts (some tools write 4096.0)."""
        value = self._value(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.wrong(key, value, f"a whole number of at least {least}")
        if most is not None and value > most:
            raise self.wrong(key, value, f"a whole number of at most {most}")
        return value

    def number(
        self, key: str, default: float | None = None, *, least: float = 0.0, most: float = sys.float_info.max
    ) -> float:
        """A finite number above zero, from `least` to `most`."""
        value = self._value(key, default)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not cast("float", value) > 0 or not least <= cast("float", value) <= most:
            raise self.wrong(key, value, f"a number from {least:g} to {most:g}" if least else "a number above 0")
        return float(cast("float", value))

    def flag(self, key: str, default: bool | None = None) -> bool:  # noqa: FBT001 - the value of a boolean field
        """True or false. 0 and 1 count: some configurations write ``rmsnorm: 1.0``."""
        value = self._value(key, default)
        if value in (0, 1):
            return bool(value)
        raise self.wrong(key, value, "true or false")

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, value, "a string")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty when absent."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, value, "a list of strings")
        return tuple(cast("list[str]", value))

    def nested(self, key: str) -> JsonFields | None:
        """An object, or None when absent."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, value, "an object")
        return JsonFields(value, self.path, prefix=f"{self._prefix}{key}.")

    def wrong(self, key: str, value: object, expected: str) -> CorruptFile:
        """The error that says what `key` is and what it should be; for the caller to raise."""
        found = "missing" if value is None else json.dumps(value, ensure_ascii=False, default=str)[:_MOST_SHOWN]
        return CorruptFile(self.path, f"{self._prefix}{key[:_MOST_SHOWN]} is {found}; expected {expected}", hint=None)

    def _value(self, key: str, default: object) -> object:
        value = self.values.get(key)
        return default if value is None else value
