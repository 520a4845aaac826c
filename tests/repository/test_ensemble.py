"""The layout `ensemble`: what is rendered around an engine, how traffic is moved, and that lint has nothing to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repository.specs import make_engine, make_manifest, make_model, make_tokenizer, read_served
from tritonforge.errors import ConfigInvalid, RepositoryError
from tritonforge.repository.ensemble import EnsembleNames
from tritonforge.repository.layout import list_models
from tritonforge.repository.lint import lint
from tritonforge.repository.manifest import MANIFEST_NAME, read_manifest
from tritonforge.repository.pbtxt import read_config
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.render_ensemble import render_ensemble, render_parts
from tritonforge.repository.routes import Routes
from tritonforge.repository.serving import ServedVersion
from tritonforge.repository.traffic import published_versions, read_routes, set_routes


def render(
    out: Path, *, name: str = "tiny", numbers: tuple[int, ...] = (1, 2), **weights: float
) -> list[ServedVersion]:
    """A model of that layout in `out`, with what it was made from beside it."""
    model = make_model(name, layout="ensemble")
    cache = out.with_name(f"{out.name}-cache")
    out.mkdir(exist_ok=True)
    served = []
    for number in numbers:
        version = model.resolved(number)
        engine = make_engine(cache / f"engine{number}")
        render_engine(version, engine, out, mount="/models", manifest=make_manifest(name, number))
        served.append(ServedVersion.of(version, engine, make_tokenizer(cache / "tokenizer")))
        render_parts(version, served[-1], out, manifest=make_manifest(name, number))
    render_ensemble(
        name, served, out, weights={number: 100.0 * (number == numbers[0]) for number in numbers}, repository=out
    )
    return served


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    render(folder)
    return folder


def steps(repository: Path, name: str) -> list[str]:
    return [step.model_name for step in read_config(repository / name / "config.pbtxt").ensemble_scheduling.step]


def test_every_version_has_models_of_its_own_and_clients_one_name(repository: Path) -> None:
    assert sorted(path.name for path in repository.iterdir()) == [
        "tiny",
        *(
            f"tiny_{part}_v{number}"
            for part in ("engine", "ensemble", "postprocessing", "preprocessing")
            for number in (1, 2)
        ),
    ]
    for number in (1, 2):
        names = EnsembleNames("tiny", number)
        assert steps(repository, names.pinned) == [names.preprocessing, names.engine, names.postprocessing]
    assert steps(repository, "tiny") == steps(repository, "tiny_ensemble_v1")


def test_lint_has_nothing_to_say(repository: Path) -> None:
    assert lint(repository) == []


def test_no_folder_of_a_version_is_empty(repository: Path) -> None:
    versions = [path for path in repository.glob("*/*") if path.is_dir()]
    assert len(versions) == 9
    for folder in versions:
        assert any(path.is_file() for path in folder.iterdir()), folder


def test_it_counts_as_one_published_model_with_its_versions(repository: Path) -> None:
    (model,) = list_models(repository)
    assert (model.name, [version.number for version in model.versions]) == ("tiny", [1, 2])
    assert published_versions(repository, "tiny") == [1, 2]
    assert [served.number for served in read_served(repository / "tiny")] == [1, 2]
    assert dict(read_routes(repository, "tiny").weights) == {1: 100, 2: 0}


def test_each_part_says_what_it_was_made_from(repository: Path) -> None:
    for name in EnsembleNames("tiny", 2).parts:
        manifest = read_manifest(repository / name / "2" / MANIFEST_NAME)
        assert (manifest.model, manifest.version, manifest.kind, dict(manifest.files)) == ("tiny", 2, "ensemble", {})


def test_several_models_share_a_repository(repository: Path) -> None:
    render(repository, name="other", numbers=(1,))

    assert [model.name for model in list_models(repository)] == ["other", "tiny"]
    assert lint(repository) == []
    assert set(steps(repository, "other")).isdisjoint(steps(repository, "tiny"))


def test_what_the_engine_does_not_take_is_not_joined(repository: Path) -> None:
    engine = read_config(repository / "tiny_engine_v1" / "config.pbtxt")
    ensemble = read_config(repository / "tiny" / "config.pbtxt")
    first, second, _ = ensemble.ensemble_scheduling.step

    assert set(second.input_map) <= {tensor.name for tensor in engine.input}
    assert {tensor.name for tensor in ensemble.input}.isdisjoint(
        {
            "embedding_bias_words",
            "embedding_bias_weights",
            "lora_task_id",
            "guided_decoding_guide",
            "decoder_text_input",
        }
    )
    assert "EMBEDDING_BIAS" not in first.output_map
    assert [tensor.name for tensor in ensemble.output] == ["text_output", "cum_log_probs", "output_log_probs"]


def test_moving_the_traffic_names_other_steps_and_changes_one_file(repository: Path) -> None:
    before = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}

    set_routes(repository, "tiny", {2: 100})

    after = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}
    assert {path.relative_to(repository).as_posix() for path in after if after[path] != before.get(path)} == {
        "tiny/config.pbtxt"
    }
    assert before.keys() == after.keys()
    assert steps(repository, "tiny") == steps(repository, "tiny_ensemble_v2")
    assert dict(read_routes(repository, "tiny").weights) == {2: 100}
    assert lint(repository) == []


def test_moving_the_traffic_there_and_back_restores_the_file(repository: Path) -> None:
    file = repository / "tiny" / "config.pbtxt"
    before = file.read_text()

    set_routes(repository, "tiny", {2: 100, 1: 0})
    set_routes(repository, "tiny", {1: 100, 2: 0})

    assert file.read_text() == before


def test_traffic_cannot_be_split_and_the_message_says_what_to_do(repository: Path) -> None:
    before = (repository / "tiny" / "config.pbtxt").read_text()

    with pytest.raises(RepositoryError) as caught:
        set_routes(repository, "tiny", {1: 95, 2: 5})

    assert "the traffic is {1: 95, 2: 5}; an ensemble sends all of it to one version" in caught.value.message
    assert "layout: gateway, which splits traffic" in str(caught.value.hint)
    assert "tiny_ensemble_v2" in str(caught.value.hint)
    assert (repository / "tiny" / "config.pbtxt").read_text() == before


def test_an_engine_that_was_published_behind_a_gateway_has_no_ensemble_to_point_to(tmp_path: Path) -> None:
    served = render(tmp_path / "models", numbers=(1,))
    other = ServedVersion(2, served[0].engine_kind, served[0].tokenizer, served[0].limits, 16, 64)

    with pytest.raises(RepositoryError) as caught:
        render_ensemble("tiny", [*served, other], tmp_path, weights={2: 1.0}, repository=tmp_path / "models")

    assert "tiny version 2 was published without an ensemble (tiny_ensemble_v2 is not there)" in caught.value.message
    assert "--replace" in str(caught.value.hint)


def test_an_engine_that_needs_what_no_ensemble_has_is_refused(tmp_path: Path) -> None:
    model = make_model(layout="ensemble")
    version = model.resolved(1)
    engine = make_engine(tmp_path / "engine")
    folder = render_engine(version, engine, tmp_path, mount="/models")
    config = folder / "config.pbtxt"
    needed = '{ name: "image_features" data_type: TYPE_FP16 dims: [ -1 ] },\n'
    config.write_text(config.read_text().replace("input [\n", f"input [\n  {needed}", 1))

    with pytest.raises(ConfigInvalid, match="needs input image_features, which the ensemble"):
        render_parts(version, ServedVersion.of(version, engine, make_tokenizer(tmp_path / "t")), tmp_path)


def test_a_gateway_still_splits_traffic(tmp_path: Path) -> None:
    served = render(tmp_path / "models")
    render_gateway(make_model(), served, tmp_path / "models", weights={1: 100.0, 2: 0.0})

    routes = set_routes(tmp_path / "models", "tiny", {1: 95, 2: 5})

    assert routes == Routes({1: 95, 2: 5}, salt="tiny")
