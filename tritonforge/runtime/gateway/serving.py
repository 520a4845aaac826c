"""The engine versions that a gateway serves, as its version folder describes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import dialect_names
from .errors import VersionUnusable
from .tokenization.base import Tokenizer
from .tokenization.load import SharedTokenizers

_SCHEMA_VERSION = 1
_FILE_NAME = "serving.json"
_NUMBER = re.compile(r"[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine takes.

    Args:
        max_input_len: Tokens of a prompt.
        max_seq_len: Tokens of a prompt and its answer together.
        max_batch_size: Requests that run at the same time.
    """

    max_input_len: int
    max_seq_len: int
    max_batch_size: int


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """One engine version behind the gateway.

    Args:
        number: Version number, which is also the version of the engine's Triton model.
        engine_model: Name of the engine's Triton model.
        dialect: Which tensors it speaks.
        tokenizer: Of its checkpoint.
        end_ids: Tokens that end an answer.
        pad_id: Token for padding.
        limits: What the engine takes.
        default_max_tokens: Tokens to generate when a request does not say.
        vocab_size: Number of token ids that the engine knows.
        unserved_inputs: Inputs of the gateway that the engine cannot serve.
        input_aliases: Further names under which an engine's inputs are sent, by their name: the engine reads one of
            the two, and passes over the other.
    """

    number: int
    engine_model: str
    dialect: str
    tokenizer: Tokenizer
    end_ids: tuple[int, ...]
    pad_id: int
    limits: Limits
    default_max_tokens: int
    vocab_size: int
    unserved_inputs: tuple[str, ...] = ()
    input_aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def takes_text(self) -> bool:
        """Whether the engine is given text, and tokenises by itself."""
        return self.dialect in dialect_names.TAKE_TEXT


@dataclass(frozen=True, slots=True)
class LoadedVersions:
    """The versions that a gateway has files of. No number is in both.

    Args:
        served: Those that can be served.
        broken: Why each of the others cannot.
    """

    served: Mapping[int, ServedVersion]
    broken: Mapping[int, str]


def load_versions(folder: Path, *, dialect: str | None = None) -> LoadedVersions:
    """Every version in `folder`, one sub-folder each, named by its number. One that is broken leaves the others alone.

    Args:
        folder: Holds the versions.
        dialect: The only one that is spoken; None for all that the gateway knows.

    Raises:
        VersionUnusable: There is no version at all.
    """
    numbered = [path for path in folder.iterdir() if _NUMBER.fullmatch(path.name)] if folder.is_dir() else []
    if not numbered:
        raise VersionUnusable(f"{folder} holds no engine versions; expected a folder per version, named by its number")
    tokenizers = SharedTokenizers()
    served: dict[int, ServedVersion] = {}
    broken: dict[int, str] = {}
    for path in sorted(numbered, key=lambda path: int(path.name)):
        try:
            version = _load_version(path, tokenizers)
            _check(version, number=int(path.name), spoken=dialect_names.ALL if dialect is None else (dialect,))
            served[version.number] = version
        except VersionUnusable as error:
            broken[int(path.name)] = str(error)
        except Exception as error:  # noqa: BLE001 (files are foreign; whatever is wrong with them, the others are not)
            broken[int(path.name)] = f"{path}: {type(error).__name__}: {error}"
    return LoadedVersions(served, broken)


def _check(version: ServedVersion, *, number: int, spoken: Sequence[str]) -> None:
    if version.number != number:
        raise VersionUnusable(f"engine_version is {version.number}; expected {number}, the folder's name")
    if version.dialect not in spoken:
        raise VersionUnusable(f"dialect is {version.dialect!r}; this gateway speaks {', '.join(spoken)}")


def _load_version(folder: Path, tokenizers: SharedTokenizers) -> ServedVersion:
    path = folder / _FILE_NAME
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VersionUnusable(f"{path} cannot be read: {error}") from error
    try:
        return _version(folder, value, tokenizers)
    except (KeyError, TypeError, ValueError) as error:
        what = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise VersionUnusable(f"{path}: {what}") from error


def _version(folder: Path, value: Mapping[str, Any], tokenizers: SharedTokenizers) -> ServedVersion:
    if value["schema_version"] != _SCHEMA_VERSION:
        raise ValueError(f"schema_version is {value['schema_version']!r}; this gateway reads {_SCHEMA_VERSION}")
    tokenizer, limits = value["tokenizer"], value["limits"]
    end_ids = tuple(int(token_id) for token_id in tokenizer["eos_token_ids"])
    if not end_ids:
        raise ValueError("tokenizer.eos_token_ids is empty; expected at least one id")
    return ServedVersion(
        number=int(value["engine_version"]),
        engine_model=str(value["engine_model"]),
        dialect=str(value["dialect"]),
        tokenizer=tokenizers.load(str(tokenizer["kind"]), folder, apart_from=_FILE_NAME),
        end_ids=end_ids,
        pad_id=int(tokenizer["pad_token_id"]),
        limits=Limits(
            max_input_len=int(limits["max_input_len"]),
            max_seq_len=int(limits["max_seq_len"]),
            max_batch_size=int(limits["max_batch_size"]),
        ),
        default_max_tokens=int(value["default_max_tokens"]),
        vocab_size=int(value["vocab_size"]),
        unserved_inputs=tuple(value.get("unserved_inputs", ())),
        input_aliases=dict(value.get("input_aliases", {})),
    )
