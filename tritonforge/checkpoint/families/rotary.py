"""Rotary position settings of config.json, in the older layout and in the newer one.

Older: ``rope_theta`` and ``rope_scaling`` (with ``type`` or ``rope_type``). Newer, from transformers 5 on: one object
``rope_parameters`` with ``rope_type``, ``rope_theta`` and the factors.
"""

from __future__ import annotations

from dataclasses import dataclass

from tritonforge.formats.json_fields import JsonFields
from tritonforge.formats.rotary import KINDS, RotaryScaling, kind_keys

_UNSCALED = "default"
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
    keys = kind_keys(scaling_fields)
    kind = scaling_fields.text(keys[0]) if keys else _UNSCALED
    if kind == _UNSCALED:
        return RotarySettings(theta, fraction, None)
    if kind not in KINDS:
        reason = f"rotary scaling {kind!r} is not supported; {' and '.join(KINDS)} are"
        return RotarySettings(theta, fraction, None, (reason,))
    return RotarySettings(theta, fraction, RotaryScaling.from_json(scaling_fields))
