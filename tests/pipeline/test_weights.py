"""Traffic and builds: the spec's weights are the first ones; from then on those in force count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipeline.builds import INT4, INT8, build, states, write_spec
from tests.support.files import stamps
from tritonforge.cli.main import run
from tritonforge.errors import BuildError
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.pipeline.preview import preview_spec
from tritonforge.pipeline.traffic import change_traffic
from tritonforge.pipeline.weights import difference, weights_after
from tritonforge.repository.traffic import read_routes
from tritonforge.spec.load import load_spec
from tritonforge.spec.model import ModelSpec

BOTH = f"1: {INT8}\n      2: {INT4}"


def weights(folder: Path) -> dict[int, float]:
    return dict(read_routes(folder / "models", "tiny").weights)


def traffic(text: str) -> str:
    return f"    traffic: {text}\n"


def model(**fields: object) -> ModelSpec:
    engine = {"engine": {"kind": "openvino"}}
    return ModelSpec.model_validate({"name": "tiny", "checkpoint": "x", "versions": {1: engine, 2: engine}, **fields})


def test_a_model_starts_with_the_traffic_of_the_spec(tiny_llama: Path, tmp_path: Path) -> None:
    result = build(write_spec(tmp_path, tiny_llama, versions=BOTH, more=traffic("{1: 25, 2: 75}")))

    assert result.traffic["tiny"] == weights(tmp_path) == {1: 25, 2: 75}


def test_a_published_model_keeps_the_weights_in_force_and_new_versions_get_nothing(
    tiny_llama: Path, tmp_path: Path
) -> None:
    build(write_spec(tmp_path, tiny_llama, versions=BOTH))
    change_traffic(tmp_path / "models", "tiny", {2: 100}, server=None)
    three = write_spec(tmp_path, tiny_llama, versions=f"{BOTH}\n      3: {INT4}", more=traffic("{1: 50, 3: 50}"))
    told: list[str] = []

    assert states(build(three, on_event=told.append)) == {1: "unchanged", 2: "unchanged", 3: "new"}
    assert weights(tmp_path) == {1: 0, 2: 100, 3: 0}
    assert told[-1] == (
        "tiny: traffic stays 1: 0, 2: 100, 3: 0; the spec says 1: 50, 3: 50 (`tritonforge build --traffic` applies it)"
    )


def test_the_spec_is_applied_when_asked(tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = write_spec(tmp_path, tiny_llama, versions=BOTH)
    build(spec)
    write_spec(tmp_path, tiny_llama, versions=BOTH, more=traffic("{1: 25, 2: 75}"))

    assert run(["build", "-f", str(spec), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["traffic"]["tiny"] == {"1": 100, "2": 0}
    assert "tiny: traffic stays 1: 100, 2: 0; the spec says 1: 25, 2: 75" in printed.err

    assert run(["build", "-f", str(spec), "--traffic", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["traffic"]["tiny"] == {"1": 25, "2": 75}
    assert "tiny: traffic 1: 25, 2: 75" in printed.err
    assert weights(tmp_path) == {1: 25, 2: 75}


def test_a_version_that_is_rebuilt_keeps_its_weight(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama, versions=BOTH))
    change_traffic(tmp_path / "models", "tiny", {2: 100}, server=None)

    build(write_spec(tmp_path, tiny_llama, versions=f"1: {INT4}\n      2: {INT8}"), replace=True)

    assert weights(tmp_path) == {1: 0, 2: 100}


def test_traffic_to_versions_that_are_not_built_is_refused_before_any_work(tiny_llama: Path, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama, versions=BOTH, more=traffic("{1: 0, 2: 100}"))

    with pytest.raises(BuildError, match="gives nothing to the versions that are built or published: 1"):
        build(spec, version=1)
    with pytest.raises(BuildError, match="gives nothing"):
        preview_spec(load_spec(spec), BuildOptions(version=1))

    assert sorted(path.name for path in tmp_path.iterdir()) == ["forge.yaml"]


def test_traffic_that_leads_nowhere_publishes_nothing(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama))
    before = stamps(tmp_path / "models")
    spec = write_spec(tmp_path, tiny_llama, versions=f"{BOTH}\n      3: {INT4}", more=traffic("{1: 0, 2: 100, 3: 0}"))

    with pytest.raises(BuildError, match="gives nothing"):
        build(spec, version=3, traffic=True)

    assert stamps(tmp_path / "models") == before


@pytest.mark.parametrize(
    ("in_force", "new", "from_spec", "expected"),
    [
        (None, [1, 2], False, {1: 95, 2: 5}),
        (None, [1], False, {1: 95}),
        ({1: 100}, [2], False, {1: 100, 2: 0}),
        ({1: 0, 2: 7}, [], False, {1: 0, 2: 7}),
        ({1: 0, 2: 7}, [2], False, {1: 0, 2: 7}),
        ({1: 100, 7: 1}, [2], True, {1: 95, 2: 5, 7: 0}),
    ],
)
def test_weights_follow_from_the_spec_and_from_what_is_in_force(
    in_force: dict[int, float] | None, new: list[int], from_spec: bool, expected: dict[int, float]
) -> None:
    assert weights_after(model(traffic={1: 95, 2: 5}), in_force, new, from_spec=from_spec) == expected


def test_equal_shares_are_no_difference() -> None:
    assert difference(model(traffic={1: 95, 2: 5}), {1: 190, 2: 10, 3: 0}) is None
    assert difference(model(traffic={1: 95, 2: 5}), {1: 94, 2: 6}) is not None


def test_a_spec_that_says_nothing_about_traffic_differs_from_nothing() -> None:
    assert difference(model(), {1: 0, 2: 100}) is None
