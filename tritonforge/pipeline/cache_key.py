"""What names an entry of the build cache, and how two such names differ. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tritonforge.artifacts import digest_of
from tritonforge.pipeline.differences import ABSENT, flat

CacheKind = Literal["checkpoints", "engines"]
# What an entry is called in messages.
NOUNS: Mapping[CacheKind, str] = {"checkpoints": "TensorRT-LLM checkpoint", "engines": "engine"}
_DIGEST = re.compile(r"[0-9a-f]{40,}")
_DIGEST_SHOWN = 8
_KEY_LENGTH = 32


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Everything that decides what is in an entry: equal keys mean files that can stand for each other.

    Args:
        kind: ``checkpoints`` or ``engines``.
        parts: Plain JSON values by name; nested ones by dotted name in messages. Of two that differ in the part `kind`,
            neither is said to be near the other.
    """

    kind: CacheKind
    parts: Mapping[str, object]

    @classmethod
    def of(cls, kind: CacheKind, parts: Mapping[str, object]) -> CacheKey:
        """The key of these parts, as they come back from a file: tuples are lists, keys are text."""
        return cls(kind, json.loads(json.dumps(parts, default=str)))

    @property
    def digest(self) -> str:
        """Name of its folder."""
        return digest_of([self.kind, self.parts])[:_KEY_LENGTH]

    @property
    def noun(self) -> str:
        """What its entry is, in messages."""
        return NOUNS[self.kind]


def changes(cached: CacheKey, wanted: CacheKey) -> tuple[str, ...]:
    """One phrase per part that differs, for example ``release 0.16.0 → 0.17.0``.

    Args:
        cached: Key of an entry.
        wanted: Key that is looked for.
    """
    before, after = flat(cached.parts), flat(wanted.parts)
    return tuple(
        f"{name} {_shown(before.get(name, ABSENT))} → {_shown(after.get(name, ABSENT))}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name, ABSENT) != after.get(name, ABSENT)
    )


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value[:_DIGEST_SHOWN] if _DIGEST.fullmatch(value) else value
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
