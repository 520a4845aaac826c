"""JSON files that lie beside a tokenizer, read with errors that name the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import VersionUnusable


def read_json_object(path: Path) -> Mapping[str, Any]:
    """The object in a JSON file; empty when there is no such file.

    Raises:
        VersionUnusable: The file is not JSON, or not an object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise VersionUnusable(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise VersionUnusable(f"{path} holds a {type(value).__name__}; expected a JSON object")
    return value


def read_special_tokens(folder: Path) -> Mapping[str, str]:
    """Named special tokens (bos_token, eos_token, …) as texts.

    From tokenizer_config.json; special_tokens_map.json adds names that the first lacks.
    """
    named: dict[str, str] = {}
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        for key, value in read_json_object(folder / file).items():
            text = token_text(value)
            if key.endswith("_token") and text is not None:
                named.setdefault(key, text)
    return named


def token_text(value: object) -> str | None:
    """Text of a special token that is written as a string or as an object with `content`."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) and value else None
