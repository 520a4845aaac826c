"""Rotary position settings of config.json, in the older layout and in the newer one.

Older: ``rope_theta`` and ``rope_scaling`` (with ``type`` or ``rope_type``). Newer, from transformers 5 on: one object
``rope_parameters`` with ``rope_type``, ``rope_theta`` and the factors.
"""

from __future__ import annotations

from dataclasses import dataclass

from tritonforge.formats.json_fields import JsonFields
from tritonforge.formats.rotary import BASES, KINDS, RotaryScaling, kind_keys

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
        CorruptFile: A value has a wrong type or no measure, or a factor of the named kind of scaling is missing.
    """
    settings = _settings(fields)
    theta = settings.number("rope_theta", fields.number("rope_theta", _DEFAULT_THETA, **BASES), **BASES)
    fraction = settings.number("partial_rotary_factor", fields.number("partial_rotary_factor", default_fraction))
    if any(isinstance(value, dict) for value in settings.values.values()):
        reason = f"its layers differ in their rotary settings (rope_parameters for {', '.join(settings.values)})"
        return RotarySettings(theta, fraction, None, (reason,))
    keys = kind_keys(settings)
    kind = settings.text(keys[0]) if keys else _UNSCALED
    if kind == _UNSCALED:
        return RotarySettings(theta, fraction, None)
    if kind not in KINDS:
        reason = f"rotary scaling {kind!r} is not supported; {' and '.join(KINDS)} are"
        return RotarySettings(theta, fraction, None, (reason,))
    scaling = RotaryScaling.from_json(settings)
    if scaling.contradiction is not None:
        reason = f"its rotary scaling contradicts itself: {scaling.contradiction}"
        return RotarySettings(theta, fraction, None, (reason,))
    return RotarySettings(theta, fraction, scaling)


def _settings(fields: JsonFields) -> JsonFields:
    """The object that counts: where both layouts are there, transformers takes the older one, unless it is empty."""
    found = (fields.nested(key) for key in ("rope_scaling", "rope_parameters"))
    return next((each for each in found if each is not None and each.values), JsonFields({}, fields.path))
