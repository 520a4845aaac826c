"""From forge.yaml to a served ensemble: publishing, tests, the next version, moving traffic, changing the layout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.builds import INT4, INT8, build, states, write_spec
from tritonforge.client import Client
from tritonforge.errors import PublishFailed, RepositoryError
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.pipeline.preview import preview_spec
from tritonforge.pipeline.serve import with_engines
from tritonforge.pipeline.traffic import change_traffic
from tritonforge.repository.lint import lint
from tritonforge.repository.pbtxt import read_config
from tritonforge.server.launcher import RunningServer, start_embedded
from tritonforge.server.options import ServerOptions
from tritonforge.spec.load import load_spec

ENSEMBLE = "    layout: ensemble\n"
BOTH = f"1: {INT8}\n      2: {INT4}"
PARTS = ("tiny_preprocessing_v{0}", "tiny_postprocessing_v{0}", "tiny_ensemble_v{0}")


def models(repository: Path) -> set[str]:
    return {path.name for path in repository.iterdir()}


def steps(repository: Path, name: str = "tiny") -> list[str]:
    return [step.model_name for step in read_config(repository / name / "config.pbtxt").ensemble_scheduling.step]


def expected_models(*numbers: int) -> set[str]:
    return {"tiny", *(name.format(number) for number in numbers for name in (*PARTS, "tiny_engine_v{0}"))}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> Path:
    """A folder with forge.yaml and a repository with version 1. Read only."""
    folder = tmp_path_factory.mktemp("published")
    build(write_spec(folder, tiny_llama, more=ENSEMBLE))
    return folder


def test_a_build_publishes_every_model_of_the_version(published: Path) -> None:
    assert models(published / "models") == expected_models(1)
    assert steps(published / "models") == steps(published / "models", "tiny_ensemble_v1")
    assert lint(published / "models") == []


def test_building_again_does_nothing(published: Path, tiny_llama: Path) -> None:
    assert states(build(published / "forge.yaml")) == {1: "unchanged"}


def test_a_preview_names_the_folders_of_the_parts(tmp_path: Path, tiny_llama: Path) -> None:
    files = preview_spec(load_spec(write_spec(tmp_path, tiny_llama, more=ENSEMBLE)), BuildOptions()).files

    assert {file.split("/")[0] for file in files} == expected_models(1)
    assert not (tmp_path / "models").exists()


def test_a_change_of_layout_is_a_change_and_takes_replace(tmp_path: Path, tiny_llama: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama)
    build(spec)
    write_spec(tmp_path, tiny_llama, more=ENSEMBLE)

    with pytest.raises(RepositoryError, match="layout was nothing, is ensemble") as caught:
        build(spec)
    assert "--replace" in str(caught.value.hint)

    lines: list[str] = []
    assert states(build(spec, replace=True, on_event=lines.append)) == {1: "changed"}
    assert [line for line in lines if "engine: from the build cache" in line]
    assert models(tmp_path / "models") == expected_models(1)
    assert steps(tmp_path / "models") == steps(tmp_path / "models", "tiny_ensemble_v1")


def test_a_gateway_that_splits_its_traffic_becomes_no_ensemble_before_one_version_has_it_all(
    tmp_path: Path, tiny_llama: Path
) -> None:
    spec = write_spec(tmp_path, tiny_llama, versions=BOTH)
    build(spec)
    change_traffic(tmp_path / "models", "tiny", {1: 95, 2: 5}, server=None)
    write_spec(tmp_path, tiny_llama, versions=BOTH, more=ENSEMBLE)

    with pytest.raises(RepositoryError, match=r"the traffic is \{1: 95, 2: 5\}; an ensemble sends all of it to one"):
        build(spec, replace=True)
    assert models(tmp_path / "models") == {"tiny", "tiny_engine_v1", "tiny_engine_v2"}

    change_traffic(tmp_path / "models", "tiny", {2: 100}, server=None)
    build(spec, replace=True)
    assert steps(tmp_path / "models") == steps(tmp_path / "models", "tiny_ensemble_v2")


def test_a_new_version_leaves_the_old_one_and_the_traffic_alone(tmp_path: Path, tiny_llama: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama, more=ENSEMBLE)
    build(spec)
    old = {
        path: path.read_bytes()
        for path in (tmp_path / "models").rglob("*")
        if path.is_file() and "_v1/" in path.as_posix()
    }
    write_spec(tmp_path, tiny_llama, versions=BOTH, more=ENSEMBLE)

    assert states(build(spec)) == {1: "unchanged", 2: "new"}
    assert models(tmp_path / "models") == expected_models(1, 2)
    assert steps(tmp_path / "models") == steps(tmp_path / "models", "tiny_ensemble_v1")
    assert {path: path.read_bytes() for path in old} == old


def test_serving_one_ensemble_takes_all_of_its_models(tmp_path: Path, published: Path) -> None:
    assert set(with_engines(published / "models", ["tiny"])) == expected_models(1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server on an empty repository."""
    (tmp_path / "models").mkdir()
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=10.0, models=())
    with start_embedded(tmp_path / "models", options=options) as server:
        yield server


@pytest.mark.triton
def test_an_ensemble_lives_through_its_versions_on_a_running_server(
    tmp_path: Path, tiny_llama: Path, server: RunningServer
) -> None:
    asked = "    tests:\n      - {prompt: The capital, max_tokens: 4}\n"
    spec = write_spec(tmp_path, tiny_llama, more=ENSEMBLE + asked)
    build(spec, server=server.grpc_url)
    with Client(server.grpc_url, timeout_s=60.0) as client:
        first = client.generate("tiny", "The capital", max_tokens=8).text
        assert client.generate("tiny_ensemble_v1", "The capital", max_tokens=8).text == first

        # The next version is asked its tests before it has any traffic; one that fails leaves nothing behind.
        wrong = "    tests:\n      - {prompt: The capital, max_tokens: 4, contains: unheard of}\n"
        write_spec(tmp_path, tiny_llama, versions=BOTH, more=ENSEMBLE + wrong)
        with pytest.raises(PublishFailed, match="version 2 fails test 1"):
            build(spec, server=server.grpc_url)
        assert models(tmp_path / "models") == expected_models(1)
        assert not client.model_ready("tiny_ensemble_v2")
        assert client.generate("tiny", "The capital", max_tokens=8).text == first

        write_spec(tmp_path, tiny_llama, versions=BOTH, more=ENSEMBLE + asked)
        build(spec, server=server.grpc_url)
        second = client.generate("tiny_ensemble_v2", "The capital", max_tokens=8).text
        assert client.generate("tiny", "The capital", max_tokens=8).text == first

        with pytest.raises(RepositoryError, match="an ensemble sends all of it to one version"):
            change_traffic(tmp_path / "models", "tiny", {1: 50, 2: 50}, server=server.grpc_url)
        change_traffic(tmp_path / "models", "tiny", {2: 100}, server=server.grpc_url)
        assert client.generate("tiny", "The capital", max_tokens=8).text == second
    assert steps(tmp_path / "models") == steps(tmp_path / "models", "tiny_ensemble_v2")
