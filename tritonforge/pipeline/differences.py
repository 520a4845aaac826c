"""What changed between the settings that a version was built from and those that are asked for now. Pure."""

from __future__ import annotations

from collections.abc import Mapping

# Settings that do not exist on one side.
ABSENT = "nothing"


def differences(
    built: Mapping[str, object], asked: Mapping[str, object], *, chosen: Mapping[str, object] | None = None
) -> tuple[str, ...]:
    """One phrase per setting that differs, for example ``limits.max_seq_len was 2048, is 4096``.

    Args:
        built: Settings of the published version, nested mappings of plain values.
        asked: Settings of the specification.
        chosen: Those of `asked` that are not at their default. A setting that came with a later release is not in
            `built`; at its default it means what was built. None takes every setting for chosen.
    """
    before, after = flat(built), flat(asked)
    if chosen is not None:
        unsaid = after.keys() - before.keys() - flat(chosen).keys()
        after = {key: value for key, value in after.items() if key not in unsaid}
    return tuple(
        f"{key} was {before.get(key, ABSENT)}, is {after.get(key, ABSENT)}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key, ABSENT) != after.get(key, ABSENT)
    )


def flat(values: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """The plain values by their dotted key."""
    found: dict[str, object] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found
