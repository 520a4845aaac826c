"""Routing: weights within tolerance, sticky, monotone, pinned."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.gateway.properties import SAME_EXAMPLES
from tritonforge.runtime.gateway.errors import VersionUnusable
from tritonforge.runtime.gateway.routing import Routes, choose_version, parse_routes
from tritonforge.runtime.tensors import RequestRejected

WEIGHTS = st.dictionaries(st.integers(1, 9), st.floats(0, 1000), min_size=1).filter(lambda w: sum(w.values()) > 1e-3)


def route(routes: Routes, *, key: str | None = None, pinned: int | None = None, draw: float = 0.0) -> int:
    return choose_version(routes, routes.shares.keys(), pinned=pinned, sticky_key=key, draw=draw)


def routes_of(weights: dict[int, float], salt: str = "model") -> Routes:
    total = sum(weights.values())
    return Routes({version: weight / total for version, weight in weights.items()}, salt)


def test_routes_are_normalised() -> None:
    routes = parse_routes('{"weights": {"1": 30, "2": 10}, "salt": "smollm2", "experiment": null, "shadow": null}')
    assert routes == Routes({1: 0.75, 2: 0.25}, "smollm2")


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"weights": {}}', '{"weights": {"1": 0}}', '{"weights": {"1": -1, "2": 2}}',
     '{"weights": {"one": 1}}', '{"weights": {"1": "x"}}', '{"weights": {"1": NaN}}', '{"weights": [1]}',
     '{"weights": {"1": 1' + "0" * 400 + "}}", "[" * 100_000],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_bad_routes_are_named(text: str) -> None:
    with pytest.raises(VersionUnusable, match="parameter routes"):
        parse_routes(text)


@SAME_EXAMPLES
@given(WEIGHTS, st.floats(0, 1, exclude_max=True))
def test_a_request_goes_only_to_versions_with_weight(weights: dict[int, float], draw: float) -> None:
    assert weights[route(routes_of(weights), draw=draw)] > 0


@pytest.mark.parametrize("sticky", [True, False])
def test_the_weights_are_kept_within_tolerance(sticky: bool) -> None:
    routes, rng, count = routes_of({1: 70, 2: 25, 3: 5}), random.Random(1), 20_000
    hits = [route(routes, key=f"user-{i}" if sticky else None, draw=rng.random()) for i in range(count)]
    for version, share in routes.shares.items():
        assert abs(hits.count(version) / count - share) < 0.015


@SAME_EXAMPLES
@given(st.text(min_size=1), st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True))
def test_a_key_keeps_its_version_whatever_is_drawn(key: str, one: float, other: float) -> None:
    routes = routes_of({1: 1, 2: 1})
    assert route(routes, key=key, draw=one) == route(routes, key=key, draw=other)


@SAME_EXAMPLES
@given(st.text(min_size=1), st.integers(0, 100), st.integers(0, 100))
def test_a_key_that_entered_the_newer_version_stays_as_its_weight_grows(key: str, one: int, other: int) -> None:
    small, large = sorted((one, other))
    if route(routes_of({1: 100 - small, 2: small}), key=key) == 2:
        assert route(routes_of({1: 100 - large, 2: large}), key=key) == 2


def test_two_models_divide_their_keys_independently() -> None:
    keys = [f"user-{i}" for i in range(4000)]
    one, other = (
        {key for key in keys if route(routes_of({1: 1, 2: 1}, salt=salt), key=key) == 2} for salt in ("a", "b")
    )
    assert 0.2 < len(one & other) / len(keys) < 0.3


def test_a_pinned_version_needs_no_weight() -> None:
    routes = routes_of({1: 100, 2: 0})
    assert route(routes, pinned=2, key="user") == 2


def test_an_unknown_version_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RequestRejected, match="version is 7; expected one of the served versions: 1, 2"):
        route(routes_of({2: 1, 1: 1}), pinned=7)
