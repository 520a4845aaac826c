"""Which engine version answers a request: pinned, sticky or by weight. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..tensors import RequestRejected
from .errors import VersionUnusable


@dataclass(frozen=True, slots=True)
class Routes:
    """How traffic is divided among engine versions.

    Args:
        shares: Share of each version, normalised to a sum of 1; a version with share 0 answers only requests that ask
            for it.
        salt: Mixed into the hash of sticky keys, so that the keys of two models are divided independently.
    """

    shares: Mapping[int, float]
    salt: str


def parse_routes(text: str) -> Routes:
    """Routes from the gateway's `routes` parameter: `{"weights": {"1": 95, "2": 5}, "salt": "name", …}`.

    Raises:
        VersionUnusable: The text is not of that form, a weight is negative, or all are 0.
    """
    try:
        value = json.loads(text)
        weights = {int(version): float(weight) for version, weight in value["weights"].items()}
        salt = str(value.get("salt") or "")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise VersionUnusable(
            f'parameter routes is {text!r}; expected {{"weights": {{"1": 100}}, "salt": "…"}}'
        ) from error
    total = math.fsum(weights.values())
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights.values()) or total <= 0:
        raise VersionUnusable(f"parameter routes has weights {weights}; expected numbers of at least 0, not all 0")
    return Routes(shares={version: weight / total for version, weight in weights.items()}, salt=salt)


def choose_version(
    routes: Routes, served: Collection[int], *, pinned: int | None, sticky_key: str | None, draw: float
) -> int:
    """The version that answers.

    A sticky key is hashed to a point in [0, 1) and the versions lie on that line from the newest to the oldest. So a
    key keeps its version while the shares stay, and a key that entered the newest version at 5 % is still there at 25
    %.

    Args:
        routes: The shares.
        served: Versions that the gateway has files of; a pinned request may name any of them, whatever its weight.
        pinned: Version that the request asks for.
        sticky_key: Key of the request.
        draw: A uniform random number in [0, 1), for requests without a key.

    Raises:
        RequestRejected: `pinned` is not served; the error lists the versions that are.
    """
    if pinned is not None:
        if pinned not in served:
            known = ", ".join(str(version) for version in sorted(served))
            raise RequestRejected(f"version is {pinned}; expected one of the served versions: {known}")
        return pinned
    point = draw if sticky_key is None else _point(routes.salt, sticky_key)
    positive = sorted((version for version, weight in routes.shares.items() if weight > 0), reverse=True)
    edge = 0.0
    for version in positive:
        edge += routes.shares[version]
        if point < edge:
            return version
    return positive[-1]  # the sum of the weights may be a rounding error below 1


def _point(salt: str, key: str) -> float:
    digest = hashlib.sha256(f"{salt}\0{key}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53
