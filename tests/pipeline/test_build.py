"""forge.yaml → repository, without a server: what is built, what is left alone, what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.builds import INT4, INT8, build, states, write_spec
from tests.support.checkpoints import write_llama
from tests.support.files import stamps
from tests.support.full_disk import file_size_limit
from tests.support.gguf_files import from_checkpoint
from tritonforge.cli.main import run
from tritonforge.errors import RepositoryError, SpecError
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.pipeline.preview import preview_spec
from tritonforge.spec.load import load_spec


def test_second_build_changes_nothing(tiny_llama: Path, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama)
    assert states(build(spec)) == {1: "new"}
    before = stamps(tmp_path / "models")

    assert states(build(spec)) == {1: "unchanged"}
    assert stamps(tmp_path / "models") == before


def test_what_an_earlier_release_has_published_is_unchanged(tiny_llama: Path, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama)
    build(spec)
    path = tmp_path / "models" / "tiny_engine_v1" / "1" / "forge-manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["settings"]["limits"]["max_beam_width"]  # as if it knew no such setting
    path.write_text(json.dumps(manifest | {"spec_digest": "of what it knew"}))

    assert states(build(spec)) == {1: "unchanged"}
    with pytest.raises(RepositoryError, match=r"for now: engine\.precision was int8, is int4$"):
        build(write_spec(tmp_path, tiny_llama, versions=f"1: {INT4}"))


def test_new_version_leaves_the_files_of_the_old_one_alone(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama))
    before = stamps(tmp_path / "models" / "tiny_engine_v1")

    result = build(write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}\n      2: {INT4}"))

    assert states(result) == {1: "unchanged", 2: "new"}
    assert stamps(tmp_path / "models" / "tiny_engine_v1") == before
    assert result.traffic["tiny"] == {1: 100, 2: 0}


def test_published_version_is_not_changed_under_its_number(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama))
    before = stamps(tmp_path / "models")
    changed = write_spec(tmp_path, tiny_llama, versions=f"1: {INT4}")

    with pytest.raises(RepositoryError, match="tiny version 1 is published") as caught:
        build(changed)

    assert "--replace" in str(caught.value.hint)
    assert stamps(tmp_path / "models") == before
    assert states(build(changed, replace=True)) == {1: "changed"}
    settings = json.loads((tmp_path / "models" / "tiny_engine_v1" / "1" / "engine.json").read_text())
    assert settings["precision"] == "int4"


def test_changed_checkpoint_is_noticed(tmp_path: Path) -> None:
    checkpoint = write_llama(tmp_path / "checkpoint", max_position=4096)
    spec = write_spec(tmp_path, checkpoint)
    build(spec)
    write_llama(checkpoint, max_position=4096, seed=1)

    with pytest.raises(RepositoryError, match="is not what the spec asks for"):
        build(spec)


def test_one_version_can_be_built_alone(tiny_llama: Path, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}\n      2: {INT4}")

    assert states(build(spec, version=1)) == {1: "new"}
    assert not (tmp_path / "models" / "tiny_engine_v2").exists()


def test_limits_left_out_fit_the_model(tmp_path: Path) -> None:
    build(write_spec(tmp_path, write_llama(tmp_path / "checkpoint", max_position=256)))

    settings = json.loads((tmp_path / "models" / "tiny_engine_v1" / "1" / "engine.json").read_text())
    assert settings["limits"] == {"max_batch_size": 32, "max_input_len": 128, "max_seq_len": 256}


def test_gguf_file_is_imported_once(tiny_llama: Path, tmp_path: Path) -> None:
    file = from_checkpoint(tiny_llama).write(tmp_path / "model.gguf")
    build(write_spec(tmp_path, file))
    cache = tmp_path / "models.forge" / "checkpoints"
    before = stamps(cache)

    build(write_spec(tmp_path, file, versions=f"1: {INT8}\n      2: {INT4}"))

    assert len(list(cache.iterdir())) == 1
    assert stamps(cache) == before


def test_preview_writes_nothing(tiny_llama: Path, tmp_path: Path) -> None:
    spec = load_spec(write_spec(tmp_path, tiny_llama))

    preview = preview_spec(spec, BuildOptions())

    assert preview.files == (
        "tiny/1/versions/1/",
        "tiny/config.pbtxt",
        "tiny_engine_v1/1/",
        "tiny_engine_v1/config.pbtxt",
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forge.yaml"]


def test_unknown_model_or_version_is_named(tiny_llama: Path, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama)

    with pytest.raises(SpecError, match="no model 'tyny'") as caught:
        build(spec, model="tyny")
    assert "tiny" in str(caught.value.hint)
    with pytest.raises(SpecError, match="no version 7"):
        build(spec, version=7)


def test_nothing_of_a_model_is_published_when_one_version_fails(tiny_llama: Path, tmp_path: Path) -> None:
    other = write_llama(tmp_path / "broken")
    (other / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes()[:-100])
    broken = f"{{checkpoint: {other}, engine: {{kind: openvino}}}}"
    spec = write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}\n      2: {broken}")

    assert run(["build", "-f", str(spec)]) == 3

    assert not list(tmp_path.glob("models/*"))
    assert not list(tmp_path.glob("models.forge/work/*"))


def test_full_disk_leaves_the_repository_as_it_was(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(write_spec(tmp_path, tiny_llama))
    before = stamps(tmp_path / "models")
    spec = write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}\n      2: {INT4}")

    with file_size_limit(50_000):
        code = run(["build", "-f", str(spec), "--no-cache"])

    assert code == 3  # the first file that is too large is the checkpoint's
    assert "rank0.safetensors: cannot write" in capsys.readouterr().err
    with file_size_limit(50_000):
        code = run(["build", "-f", str(spec)])
    assert code == 4  # the cache has the checkpoint: now it is the engine's
    assert "cannot be written" in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.partial"))
    assert stamps(tmp_path / "models") == before
    assert states(build(spec)) == {1: "unchanged", 2: "new"}


def test_what_a_killed_build_left_is_removed_by_the_next(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama))
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    for folder in ("work", "checkpoints", "cache/engines", "cache/checkpoints"):
        (tmp_path / "models.forge" / folder / f".left.{child.pid}-0.partial" / "deep").mkdir(parents=True)

    build(write_spec(tmp_path, tiny_llama))

    assert not list(tmp_path.glob("models.forge/work/.*"))
    assert not list(tmp_path.glob("models.forge/checkpoints/.*"))
    assert not list(tmp_path.glob("models.forge/cache/*/.*"))


def test_a_folder_beside_the_repository_that_cannot_be_made_is_named(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models.forge").write_text("a file")

    assert run(["build", "-f", str(write_spec(tmp_path, tiny_llama))]) == 5

    assert "models.forge/work: cannot be written" in capsys.readouterr().err
