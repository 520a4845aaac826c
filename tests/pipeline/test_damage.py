"""What was damaged after it was published is noticed, and built again in place without removing anything by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline.builds import INT4, INT8, build, states, write_spec
from tests.support.files import stamps
from tritonforge.errors import RepositoryError
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.pipeline.preview import preview_spec
from tritonforge.pipeline.traffic import change_traffic
from tritonforge.repository.lint import lint
from tritonforge.repository.traffic import read_routes
from tritonforge.spec.load import load_spec

BOTH = f"1: {INT8}\n      2: {INT4}"
MANIFEST = "tiny_engine_v1/1/forge-manifest.json"
SERVING = "tiny/1/versions/{}/serving.json"
BROKEN_MANIFEST = r"its manifest cannot be read \(.*forge-manifest\.json: "


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path) -> Path:
    """A folder with a repository of two versions, the second with all the traffic, and its build cache. Read only."""
    folder = tmp_path_factory.mktemp("whole")
    build(write_spec(folder, tiny_llama, versions=BOTH))
    change_traffic(folder / "models", "tiny", {2: 100}, server=None)
    return folder


@pytest.fixture
def spec(whole: Path, tmp_path: Path, tiny_llama: Path) -> Path:
    """A specification with a copy of that repository, all of it as asked for."""
    for name in ("models", "models.forge"):
        shutil.copytree(whole / name, tmp_path / name)
    return write_spec(tmp_path, tiny_llama, versions=BOTH)


def weights(spec: Path) -> dict[int, float]:
    return dict(read_routes(spec.parent / "models", "tiny").weights)


def errors(spec: Path) -> list[str]:
    return [finding.message for finding in lint(spec.parent / "models") if finding.severity.name == "ERROR"]


def remove(name: str) -> Callable[[Path], None]:
    def damage(repository: Path) -> None:
        path = repository / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    return damage


def overwrite(name: str, text: str) -> Callable[[Path], None]:
    def damage(repository: Path) -> None:
        (repository / name).unlink()
        (repository / name).write_text(text)

    return damage


def engine_file(folder: Path) -> str:
    return max(json.loads((folder / MANIFEST).read_text())["files"])


@pytest.mark.parametrize(
    ("damage", "phrase"),
    [
        (remove("tiny_engine_v1/config.pbtxt"), r"its file config\.pbtxt is missing"),
        (overwrite("tiny_engine_v1/config.pbtxt", "{"), r"its file config\.pbtxt cannot be read \(.*config\.pbtxt:1: "),
        (remove("tiny_engine_v1/1/model.py"), r"its file model\.py is missing"),
        (overwrite(MANIFEST, "{}"), BROKEN_MANIFEST),
        (overwrite(MANIFEST, '{"schema": 99}'), BROKEN_MANIFEST),
        (remove(SERVING.format(1)), r"its serving\.json in the gateway is missing"),
        (overwrite(SERVING.format(1), "{"), r"its gateway cannot be read \(.*serving\.json: "),
        (remove("tiny/1/model.py"), r"its gateway's model\.py is missing"),
    ],
    ids=[
        "config",
        "broken config",
        "program",
        "manifest",
        "manifest of tomorrow",
        "no serving",
        "broken serving",
        "gateway's program",
    ],
)
def test_a_damaged_version_is_named_and_built_again(spec: Path, damage: Callable[[Path], None], phrase: str) -> None:
    damage(spec.parent / "models")
    before = stamps(spec.parent / "models")

    with pytest.raises(RepositoryError, match=f"tiny version 1 is published and is not .*{phrase}") as caught:
        build(spec)
    assert "--replace" in str(caught.value.hint)
    with pytest.raises(RepositoryError, match=phrase):
        preview_spec(load_spec(spec), BuildOptions())
    assert stamps(spec.parent / "models") == before

    said: list[str] = []
    assert states(build(spec, replace=True, on_event=said.append))[1] == "changed"
    assert any(line.startswith("tiny version 1: engine: from the build cache") for line in said)
    assert errors(spec) == []
    assert weights(spec) == {1: 0, 2: 100}
    assert states(build(spec)) == {1: "unchanged", 2: "unchanged"}


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "missing"])
def test_an_engine_file_that_is_not_as_it_was_published(spec: Path, cut: bool) -> None:
    folder = spec.parent / "models" / "tiny_engine_v1" / "1"
    name = engine_file(spec.parent / "models")
    size = (folder / name).stat().st_size
    (folder / name).unlink()
    if cut:
        (folder / name).write_bytes(b"x")

    phrase = f"has 1 bytes; it was published with {size}" if cut else "is missing"
    with pytest.raises(RepositoryError, match=f"its file {name} {phrase}"):
        build(spec)

    assert states(build(spec, replace=True)) == {1: "changed", 2: "unchanged"}
    assert (folder / name).stat().st_size == size


def test_of_many_lost_files_a_few_are_named(spec: Path) -> None:
    path = spec.parent / "models" / MANIFEST
    manifest = json.loads(path.read_text())
    manifest["files"] |= {f"part{number}": 1 for number in range(9)} | {"a\0b": 1}
    path.unlink()
    path.write_text(json.dumps(manifest))

    with pytest.raises(RepositoryError, match="part0 is missing; .*part1 is missing; 7 more of its files are not as"):
        build(spec)


@pytest.mark.parametrize("name", ["tiny", "tiny/config.pbtxt"])
def test_a_gateway_that_is_gone_is_written_anew_with_the_traffic_of_the_spec(spec: Path, name: str) -> None:
    remove(name)(spec.parent / "models")

    with pytest.raises(RepositoryError, match=r"its gateway (is missing|cannot be read)"):
        build(spec)

    said: list[str] = []
    assert states(build(spec, replace=True, on_event=said.append)) == {1: "changed", 2: "changed"}
    warning = "warning: tiny: the weights in force cannot be read; the spec's traffic counts"
    assert (warning in said) is (name != "tiny"), "of one that is gone nobody knows whether there was traffic"
    assert weights(spec) == {1: 100, 2: 0}
    assert errors(spec) == []


def test_a_broken_version_beside_a_new_one_is_named_with_the_way_out(spec: Path, tiny_llama: Path) -> None:
    overwrite(SERVING.format(1), "{")(spec.parent / "models")
    write_spec(spec.parent, tiny_llama, versions=f"{BOTH}\n      3: {INT4}")

    for replace in (False, True):
        with pytest.raises(RepositoryError, match="tiny version 1 is damaged, and no other can be published") as caught:
            build(spec, version=3, replace=replace)
        assert caught.value.hint == "build it again: --version 1 --replace"

    assert states(build(spec, version=1, replace=True)) == {1: "changed"}
    assert states(build(spec)) == {1: "unchanged", 2: "unchanged", 3: "new"}
    assert weights(spec) == {1: 0, 2: 100, 3: 0}


def test_several_broken_versions_are_built_together(spec: Path) -> None:
    for number in (1, 2):
        overwrite(SERVING.format(number), "{")(spec.parent / "models")

    with pytest.raises(RepositoryError, match="tiny version 2 is damaged"):
        build(spec, version=1, replace=True)
    assert states(build(spec, replace=True)) == {1: "changed", 2: "changed"}
    assert errors(spec) == []


def test_a_broken_version_that_the_spec_does_not_have_is_dropped_when_replacing(spec: Path, tiny_llama: Path) -> None:
    overwrite(SERVING.format(2), "{")(spec.parent / "models")
    write_spec(spec.parent, tiny_llama, versions=f"1: {INT8}\n      3: {INT4}")

    with pytest.raises(RepositoryError, match="tiny version 2 is damaged") as caught:
        build(spec)
    assert "--replace to leave it out" in str(caught.value.hint)

    said: list[str] = []
    assert states(build(spec, replace=True, on_event=said.append)) == {1: "unchanged", 3: "new"}
    assert "warning: tiny version 2 is damaged and not in the spec; the gateway drops it" in said
    assert weights(spec) == {1: 100, 3: 0}, "it had all the traffic: the spec's counts again"
    assert (spec.parent / "models" / "tiny_engine_v2").is_dir()
    assert errors(spec) == []


def test_weights_that_cannot_be_read_are_given_up_only_when_replacing(spec: Path, tiny_llama: Path) -> None:
    overwrite("tiny/config.pbtxt", 'backend: "python"')(spec.parent / "models")
    write_spec(spec.parent, tiny_llama, versions=f"{BOTH}\n      3: {INT4}")

    with pytest.raises(RepositoryError, match="has no parameter 'routes'") as caught:
        build(spec, version=3)
    assert "--replace" in str(caught.value.hint)


def test_the_damage_of_another_model_stops_no_build(spec: Path, tmp_path: Path, tiny_llama: Path) -> None:
    overwrite(MANIFEST, "{}")(spec.parent / "models")
    other = tmp_path / "other"
    other.mkdir()
    path = write_spec(other, tiny_llama)
    path.write_text(path.read_text().replace("./models", str(tmp_path / "models")).replace("name: tiny", "name: big"))

    assert states(build(path)) == {1: "new"}
    assert states(build(path)) == {1: "unchanged"}


def test_a_lost_part_of_an_ensemble_is_damage(tmp_path: Path, tiny_llama: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama, more="    layout: ensemble\n")
    build(spec)
    remove("tiny_preprocessing_v1")(tmp_path / "models")

    with pytest.raises(RepositoryError, match="its model tiny_preprocessing_v1 is missing"):
        build(spec)
    assert states(build(spec, replace=True)) == {1: "changed"}
    remove("tiny")(tmp_path / "models")
    with pytest.raises(RepositoryError, match="its ensemble is missing"):
        build(spec)
    assert states(build(spec, replace=True)) == {1: "changed"}
    assert states(build(spec)) == {1: "unchanged"}
    assert errors(spec) == []


def test_a_folder_of_another_model_is_found_before_any_work(spec: Path, tmp_path: Path, tiny_llama: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    path = write_spec(other, tiny_llama, versions=f"1: {INT8}")
    named = path.read_text().replace("./models", str(tmp_path / "models")).replace("name: tiny", "name: tiny_engine_v1")
    path.write_text(named)
    said: list[str] = []

    with pytest.raises(RepositoryError, match="belongs to the model 'tiny', and 'tiny_engine_v1' needs a folder of"):
        build(path, on_event=said.append)
    with pytest.raises(RepositoryError, match="belongs to the model 'tiny'"):
        preview_spec(load_spec(path), BuildOptions())
    assert said == []


KILLED = """
import os, shutil, sys
from pathlib import Path
from tritonforge.repository.publish import Transaction
repository = Path(sys.argv[1])
with Transaction(repository) as transaction:
    staged = transaction.staging / "tiny_engine_v1"
    shutil.copytree(repository / "tiny_engine_v1", staged)
    (staged / "1" / "model.py").unlink()
    transaction.publish([staged], apply=lambda: os._exit(0))
"""


def test_half_of_a_change_that_was_interrupted_is_undone_before_anything_is_compared(spec: Path) -> None:
    repository = spec.parent / "models"
    subprocess.run([sys.executable, "-c", KILLED, str(repository)], check=True)
    assert not (repository / "tiny_engine_v1" / "1" / "model.py").exists()

    assert states(build(spec)) == {1: "unchanged", 2: "unchanged"}
    assert (repository / "tiny_engine_v1" / "1" / "model.py").is_file()
