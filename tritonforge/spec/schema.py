"""JSON Schema of forge.yaml: what editors complete by, and what error messages look up known keys in. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tritonforge.spec.document import KeyPath
from tritonforge.spec.forge import ForgeSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands in the specification.

    Args:
        path: Keys that lead to it.
        siblings: Keys that are known beside it, itself included; empty when any key may stand there.
        description: What it means; empty when unknown.
        kinds: The kinds that may stand there, when ``kind`` tells them apart.
    """

    path: KeyPath
    siblings: tuple[str, ...]
    description: str
    kinds: tuple[str, ...]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of forge.yaml, with a description for every key."""
    schema = ForgeSpec.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, **_tidied(schema), "title": "forge.yaml"}


def place_of(loc: tuple[str | int, ...]) -> Place:
    """Where pydantic's location of an error is in the file.

    Args:
        loc: Location as pydantic gives it: with the kind of an engine between ``engine`` and its keys, and with
            ``[key]`` after a key that is wrong itself.
    """
    node: Schema = _schema()
    path: list[str | int] = []
    siblings: tuple[str, ...] = ()
    for step in loc:
        if step == "[key]":
            continue
        if "discriminator" in node:
            node = _followed({"$ref": node["discriminator"]["mapping"][step]})
            continue
        path.append(step if "items" in node and isinstance(step, int) else str(step))
        siblings = tuple(node.get("properties", ()))
        node = _followed(node.get("properties", {}).get(step) or node.get("items") or node.get("additionalProperties"))
    kinds = tuple(node.get("discriminator", {}).get("mapping", ()))
    return Place(tuple(path), siblings, node.get("description", ""), kinds)


def homes_of(key: str) -> tuple[str, ...]:
    """Dotted places where a key of that name is known, for a hint when it stands at the wrong place.

    A place names the kind of engine when only one kind knows the key.
    """
    kinds_at: dict[str, list[str]] = {}
    for place, name, kind in _keys(_schema(), ""):
        if name == key:
            kinds_at.setdefault(place, []).append(kind)
    return tuple(
        f"{place} (kind: {kinds[0]})" if kinds[0] and len(kinds) == 1 else place for place, kinds in kinds_at.items()
    )


@cache
def _schema() -> Schema:
    return json_schema()


def _followed(node: Any) -> Schema:
    """A schema node with references followed and the null of an optional value taken away."""
    if not isinstance(node, Mapping):
        return {}
    if "anyOf" in node:
        return _followed(next(option for option in node["anyOf"] if option.get("type") != "null"))
    if "$ref" in node:
        target = _schema()["$defs"][node["$ref"].rpartition("/")[2]]
        return {**_followed(target), **{key: value for key, value in node.items() if key != "$ref"}}
    return node


def _keys(node: Schema, place: str, kind: str = "") -> Iterator[tuple[str, str, str]]:
    """Every known key below a node: dotted place of the mapping that it belongs to, its name, and the engine kind."""
    node = _followed(node)
    for chosen, reference in node.get("discriminator", {}).get("mapping", {}).items():
        yield from _keys({"$ref": reference}, place, chosen)
    for name, below in node.get("properties", {}).items():
        yield place, name, kind
        yield from _keys(below, f"{place}.{name}" if place else name, kind)
    if "items" in node:
        yield from _keys(node["items"], f"{place}[]", kind)
    if isinstance(node.get("additionalProperties"), Mapping):
        yield from _keys(node["additionalProperties"], f"{place}.N", kind)


def _tidied(node: Any) -> Any:
    """A schema without the titles that repeat the names of keys, and with each description on one line."""
    if isinstance(node, list):
        return [_tidied(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidied = {key: _tidied(value) for key, value in node.items() if not (key == "title" and isinstance(value, str))}
    if isinstance(tidied.get("description"), str):
        tidied["description"] = " ".join(tidied["description"].split())
    return tidied
