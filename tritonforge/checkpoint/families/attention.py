"""Head counts and sizes, checked against each other; the same rules hold for every family."""

from __future__ import annotations

from tritonforge.formats.json_fields import JsonFields


def key_value_heads(fields: JsonFields, key: str, heads: int, *, default: int) -> int:
    """The number of key and value heads, which must divide the number of query heads.

    Raises:
        CorruptFile: It does not.
    """
    found = fields.integer(key, default)
    if heads % found:
        raise fields.wrong(key, found, f"a divisor of num_attention_heads ({heads})")
    return found


def head_size(fields: JsonFields, key: str, hidden: int, heads: int) -> int:
    """The width of one head: named by `key`, else hidden size / heads.

    Raises:
        CorruptFile: It is not named, and the hidden size is not a multiple of the heads; or it is odd, so that it
            cannot be rotated in pairs.
    """
    if key not in fields and hidden % heads:
        raise fields.wrong("hidden_size", hidden, f"a multiple of num_attention_heads ({heads}), or {key} to be set")
    found = fields.integer(key, hidden // heads)
    if found % 2:
        raise fields.wrong(key, found, "an even number")
    return found


def fused_reason(heads: int, kv_heads: int, size: int) -> str:
    """The words that explain the rows of query, key and value."""
    return f"{heads} query heads × {size}, {kv_heads} KV heads × {size}"


def check_rotary_dim(fields: JsonFields, size: int, fraction: float) -> None:
    """Check that the rotating part of a head is a whole, even number of dimensions.

    Raises:
        CorruptFile: It is not.
    """
    rotating = size * fraction
    if fraction > 1 or rotating < 2 or rotating % 2:
        raise fields.wrong("partial_rotary_factor", fraction, f"a fraction that rotates an even part of {size}")
