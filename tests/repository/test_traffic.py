"""Traffic: weights on disk are changed in one step, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.repository.records import read_generations
from tests.repository.specs import copy_models
from tritonforge.errors import ConfigInvalid, PublishFailed, RepositoryError, ServerError
from tritonforge.repository.pbtxt import parameter_of, parse_config, quoted
from tritonforge.repository.publish import Transaction
from tritonforge.repository.routes import Routes, parse_routes, routes_text
from tritonforge.repository.traffic import read_routes, set_routes, with_routes


@pytest.fixture
def repository(tmp_path: Path, tiny_v1_v2: Path) -> Path:
    """A published model `tiny` with versions 1 and 2; version 1 has all the traffic."""
    repository = tmp_path / "models"
    with Transaction(repository) as transaction:
        transaction.publish(copy_models(tiny_v1_v2, transaction.staging))
    return repository


def test_weights_are_read_and_changed(repository: Path) -> None:
    assert read_routes(repository, "tiny").weights == {1: 100.0, 2: 0.0}

    set_routes(repository, "tiny", {1: 95, 2: 5})

    routes = read_routes(repository, "tiny")
    assert routes.weights == {1: 95.0, 2: 5.0}
    assert routes.shares == {1: 0.95, 2: 0.05}
    assert read_generations(repository)[-1].purpose == "traffic of tiny to {1: 95, 2: 5}"


def test_everything_else_in_the_config_stays_to_the_byte(repository: Path) -> None:
    file = repository / "tiny" / "config.pbtxt"
    before = file.read_text()

    set_routes(repository, "tiny", {2: 1})

    changed = [
        pair for pair in zip(before.splitlines(), file.read_text().splitlines(), strict=True) if pair[0] != pair[1]
    ]
    assert len(changed) == 1
    assert "routes" in changed[0][0]


def test_the_replaced_config_is_kept(repository: Path) -> None:
    before = (repository / "tiny" / "config.pbtxt").read_bytes()

    set_routes(repository, "tiny", {2: 1})

    assert (
        repository.with_name("models.forge") / "archive" / "000002" / "tiny" / "config.pbtxt"
    ).read_bytes() == before


def test_a_gateway_that_does_not_load_gets_its_old_weights_back(repository: Path) -> None:
    seen = []

    def load() -> None:
        seen.append(read_routes(repository, "tiny").weights)
        raise ServerError("tiny is not ready")

    with pytest.raises(PublishFailed, match="tiny is not ready"):
        set_routes(repository, "tiny", {2: 1}, apply=load, undo=lambda: seen.append("loaded again"))

    assert seen == [{2: 1.0}, "loaded again"]
    assert read_routes(repository, "tiny").weights == {1: 100.0, 2: 0.0}


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ({3: 1.0}, "there is no version 3; published versions: 1, 2"),
        ({1: -1.0}, "weight of version 1 is -1.0"),
        ({1: float("inf")}, "weight of version 1 is inf"),
        ({1: float("nan")}, "weight of version 1 is nan"),
        ({1: 1e308, 2: 1e308}, "weight of version 1 is 1e+308; expected a number from 0 to 1e+09"),
        ({1: 0.0, 2: 0.0}, "all weights are 0"),
        ({}, "all weights are 0"),
    ],
)
def test_weights_that_route_nothing_are_refused(repository: Path, weights: dict[int, float], problem: str) -> None:
    with pytest.raises(RepositoryError, match=re.escape(problem)):
        set_routes(repository, "tiny", weights)

    assert read_routes(repository, "tiny").weights == {1: 100.0, 2: 0.0}


def test_an_unknown_model_names_the_nearest(repository: Path) -> None:
    with pytest.raises(RepositoryError, match="no published model 'tinny'") as caught:
        read_routes(repository, "tinny")

    assert caught.value.hint == "did you mean 'tiny'?"


def test_a_hand_edited_form_that_cannot_be_changed_is_refused(repository: Path) -> None:
    file = repository / "tiny" / "config.pbtxt"
    text = file.read_text()
    file.write_text(re.sub(r'key: "routes"', 'key: "rou" "tes"', text))

    with pytest.raises(ConfigInvalid, match="cannot be changed automatically"):
        set_routes(repository, "tiny", {2: 1})


def test_a_gateway_without_routes_says_what_to_do(repository: Path) -> None:
    file = repository / "tiny" / "config.pbtxt"
    file.write_text(re.sub(r'key: "routes"', 'key: "roots"', file.read_text()))

    with pytest.raises(ConfigInvalid, match="no parameter 'routes'"):
        read_routes(repository, "tiny")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weights": {"a": 1}, "salt": ""}', '{"weights": [1], "salt": ""}'])
def test_broken_routes_are_an_error_that_shows_them(text: str) -> None:
    with pytest.raises(RepositoryError, match="expected JSON with weights"):
        parse_routes(text, source="config.pbtxt")


@given(
    st.dictionaries(st.integers(1, 2**31), st.floats(0, 1e9), min_size=1),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.none() | st.text(st.characters(exclude_categories=["Cs"])),
)
def test_any_routes_survive_the_config(weights: dict[int, float], salt: str, experiment: str | None) -> None:
    before = f"# kept\nparameters {{ key: 'routes' value: {{ string_value: {quoted(salt)} }} }} # kept too\n"
    routes = Routes(weights, salt, experiment)

    after = with_routes(before, routes, file=Path("config.pbtxt"))

    found = parameter_of(parse_config(after, file="config.pbtxt"), "routes")
    assert found == routes_text(routes)
    assert parse_routes(found, source="") == routes
    assert after.startswith("# kept\n")
    assert after.endswith(" # kept too\n")
