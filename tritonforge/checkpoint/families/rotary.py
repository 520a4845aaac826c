"""Rotary position settings of config.json, in the older layout and in the newer one.

Older: ``rope_theta`` and ``rope_scaling`` (with ``type`` or ``rope_type``). Newer, from transformers 5 on: one object
``rope_parameters`` with ``rope_type``, ``rope_theta`` and the factors.
"""

from __future__ import annotations

from dataclasses import dataclass

from tritonforge.formats.json_fields import JsonFields
from tritonforge.formats.trtllm import RotaryScaling

_UNSCALED = "default"
_KIND_KEYS = ("type", "rope_type")
_DEFAULT_THETA = 10000.0


@dataclass(frozen=True, slots=True)
class RotarySettings:
    """How positions enter the attention.

    Args:
        theta: Base of the frequencies.
        fraction: Part of each head that rotates, 0 to 1.
        scaling: Stretching of positions, if any.
        reasons: Why these settings are not supported.
    """

    theta: float
    fraction: float
    scaling: RotaryScaling | None
    reasons: tuple[str, ...] = ()


def read_rotary(fields: JsonFields, *, default_fraction: float) -> RotarySettings:
    """Read the settings from either layout.

    Args:
        fields: config.json.
        default_fraction: ``partial_rotary_factor`` where config.json does not name it.

    Raises:
        CorruptFile: A value has a wrong type, or a factor of the named kind of scaling is missing.
    """
    newer = fields.nested("rope_parameters") or JsonFields({}, fields.path)
    scaling_fields = fields.nested("rope_scaling") or newer
    theta = newer.number("rope_theta", fields.number("rope_theta", _DEFAULT_THETA))
    fraction = newer.number("partial_rotary_factor", fields.number("partial_rotary_factor", default_fraction))
    if any(isinstance(value, dict) for value in newer.values.values()):
        reason = f"its layers differ in their rotary settings (rope_parameters for {', '.join(newer.values)})"
        return RotarySettings(theta, fraction, None, (reason,))
    kind_keys = tuple(key for key in _KIND_KEYS if key in scaling_fields)
    kind = scaling_fields.text(kind_keys[0]) if kind_keys else _UNSCALED
    if kind == _UNSCALED:
        return RotarySettings(theta, fraction, None)
    if kind == "linear":
        scaling = RotaryScaling(kind, scaling_fields.number("factor"), kind_keys=kind_keys)
        return RotarySettings(theta, fraction, scaling)
    if kind == "llama3":
        return RotarySettings(theta, fraction, _read_llama3(scaling_fields, kind_keys))
    reason = f"rotary scaling {kind!r} is not supported; linear and llama3 are"
    return RotarySettings(theta, fraction, None, (reason,))


def _read_llama3(fields: JsonFields, kind_keys: tuple[str, ...]) -> RotaryScaling:
    return RotaryScaling(
        "llama3",
        fields.number("factor"),
        low_freq_factor=fields.number("low_freq_factor"),
        high_freq_factor=fields.number("high_freq_factor"),
        original_max_position_embeddings=fields.integer("original_max_position_embeddings"),
        kind_keys=kind_keys,
    )
