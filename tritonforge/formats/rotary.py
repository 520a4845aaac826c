"""Rotary scaling: how it is written in JSON, and what it does to the frequencies. Pure.

config.json of Hugging Face and of TensorRT-LLM have the same object, under ``rope_scaling`` and ``rotary_scaling``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tritonforge.formats.json_fields import JsonFields

LINEAR: Final = "linear"
LLAMA3: Final = "llama3"
KINDS = (LINEAR, LLAMA3)
# Either key carries the kind. The newer one comes first: it counts when both are there, as in transformers.
KIND_KEYS = ("rope_type", "type")
# What factors and the base of the frequencies can be. Published ones are from 1 to 1e3, and from 1e4 to 1e9.
FACTORS: Mapping[str, float] = {"least": 0.01, "most": 1e4}
BASES: Mapping[str, float] = {"least": 1.0, "most": 1e12}


@dataclass(frozen=True, slots=True)
class RotaryScaling:
    """How rotary positions are stretched beyond the length that the model was first trained for.

    Args:
        kind: ``linear`` (positions divided by `factor`) or ``llama3`` (long wavelengths divided, short ones kept).
        factor: By how much.
        low_freq_factor: llama3: waves longer than original / this are divided by `factor`.
        high_freq_factor: llama3: waves shorter than original / this are left alone.
        original_max_position_embeddings: llama3: length in tokens of the first training.
        kind_keys: Keys that carry the kind in JSON. TensorRT-LLM before 0.12 demands ``type``, later releases read
            either, so the source's spelling is kept.
    """

    kind: str
    factor: float
    low_freq_factor: float | None = None
    high_freq_factor: float | None = None
    original_max_position_embeddings: int | None = None
    kind_keys: tuple[str, ...] = KIND_KEYS[1:]

    @property
    def contradiction(self) -> str | None:
        """Why its values cannot be meant together, if they cannot."""
        low, high = self.low_freq_factor, self.high_freq_factor
        if low is None or high is None or low < high:
            return None
        return f"low_freq_factor {low:g} is not below high_freq_factor {high:g}"

    def to_json(self) -> dict[str, object]:
        """The object that goes into config.json."""
        values: dict[str, object] = dict.fromkeys(self.kind_keys, self.kind)
        values["factor"] = self.factor
        for key in ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings"):
            if getattr(self, key) is not None:
                values[key] = getattr(self, key)
        return values

    @classmethod
    def from_json(cls, fields: JsonFields, *, defaults: Mapping[str, float] | None = None) -> RotaryScaling:
        """Read the object.

        Args:
            fields: The object.
            defaults: Values of llama3's keys where they are missing; without one a key is required.

        Raises:
            CorruptFile: The kind is none of `KINDS`, a key is missing, or a value has a wrong type or no measure.
        """
        keys = kind_keys(fields)
        named_by = keys[0] if keys else KIND_KEYS[0]
        kind = fields.text(named_by)
        if kind not in KINDS:
            raise fields.wrong(named_by, kind, " or ".join(KINDS))
        if kind == LINEAR:
            return cls(kind, fields.number("factor", **FACTORS), kind_keys=keys)
        default = (defaults or {}).get
        original = default("original_max_position_embeddings")
        return cls(
            kind,
            fields.number("factor", default("factor"), **FACTORS),
            low_freq_factor=fields.number("low_freq_factor", default("low_freq_factor"), **FACTORS),
            high_freq_factor=fields.number("high_freq_factor", default("high_freq_factor"), **FACTORS),
            original_max_position_embeddings=fields.integer(
                "original_max_position_embeddings", None if original is None else int(original)
            ),
            kind_keys=keys,
        )

    def stretched(self, frequency: float) -> float:
        """A rotary frequency after scaling, in radians per position.

        llama3: wavelengths longer than ``original / low`` positions are stretched by the whole factor, those shorter
        than ``original / high`` not at all, and in between the two are blended.
        """
        if self.kind == LINEAR:
            return frequency / self.factor
        original, low, high = self.original_max_position_embeddings, self.low_freq_factor, self.high_freq_factor
        if original is None or low is None or high is None:
            raise ValueError(f"{self} lacks a parameter of llama3 scaling")
        turns = original * frequency / (2 * math.pi)  # how often a dimension turns within the original context
        kept = min(max((turns - low) / (high - low), 0.0), 1.0)
        return (1 - kept) * frequency / self.factor + kept * frequency


def kind_keys(fields: JsonFields) -> tuple[str, ...]:
    """The keys of a scaling object that carry its kind; empty when there are none."""
    return tuple(key for key in KIND_KEYS if key in fields)
