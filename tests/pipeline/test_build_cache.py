"""Building with the cache: what is made once, what is taken from it and why, and what a publish shares with it."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.pipeline.builds import INT4, INT8, build, states, write_spec
from tests.support.checkpoints import write_llama
from tests.support.files import contents, stamps
from tritonforge.checkpoint import prove_tokenizer
from tritonforge.cli.main import run
from tritonforge.errors import BuildError, CheckpointError
from tritonforge.pipeline import sources
from tritonforge.pipeline.build import build_spec
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.spec.load import load_spec

BOTH = f"1: {INT8}\n      2: {INT4}"


def told(spec: Path, **options: object) -> list[str]:
    said: list[str] = []
    build(spec, on_event=said.append, **options)
    return said


def unpublish(folder: Path) -> None:
    """Remove all that was built but the cache."""
    shutil.rmtree(folder / "models")


def test_a_second_build_takes_the_engine_and_says_why(tiny_llama: Path, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama)
    first = told(spec)
    before = contents(tmp_path / "models" / "tiny_engine_v1")
    unpublish(tmp_path)

    second = told(spec)

    assert "tiny version 1: engine: not from the build cache: nothing of its kind is there yet" in first
    assert any(line.startswith("converting") for line in first)
    assert not any(line.startswith(("converting", "building")) for line in second)
    (hit,) = [line for line in second if "from the build cache" in line]
    assert hit.startswith("tiny version 1: engine: from the build cache: made for tiny version 1 at ")
    assert hit.endswith("the same are: kind, checkpoint, tritonforge, conversion, engine, limits, openvino")
    after = contents(tmp_path / "models" / "tiny_engine_v1")
    manifest = "1/forge-manifest.json"  # has the time of the build
    assert {name: text for name, text in after.items() if name != manifest} == {
        name: text for name, text in before.items() if name != manifest
    }


def test_versions_of_one_checkpoint_convert_once_and_prove_its_tokenizer_once(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proved: list[Path] = []

    def prove(source, tokenizer) -> None:
        proved.append(source.folder)
        prove_tokenizer.prove_tokenizer(source, tokenizer)

    monkeypatch.setattr(sources, "prove_tokenizer", prove)

    said = told(write_spec(tmp_path, tiny_llama, versions=BOTH))

    assert sum(line.startswith("converting") for line in said) == 1
    assert proved == [tiny_llama]


def test_without_the_cache_versions_still_share_what_is_converted(tiny_llama: Path, tmp_path: Path) -> None:
    said = told(write_spec(tmp_path, tiny_llama, versions=BOTH), use_cache=False)

    assert sum(line.startswith("converting") for line in said) == 1
    assert not (tmp_path / "models.forge" / "cache").exists()
    assert not list((tmp_path / "models.forge" / "work").iterdir())


def test_a_miss_names_the_setting_that_differs(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama))
    unpublish(tmp_path)

    said = told(write_spec(tmp_path, tiny_llama, versions=f"1: {INT4}"))

    assert (
        "tiny version 1: engine: not from the build cache: against that of tiny version 1, changed: "
        "engine.precision int8 → int4" in said
    )
    assert any(line.startswith("tiny version 1: TensorRT-LLM checkpoint: from the build cache") for line in said)


def test_settings_that_are_not_compiled_do_not_matter(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama))
    more = "    serving: {default_max_tokens: 7}\n    tests: [{prompt: a, max_tokens: 1}]\n"

    assert build(write_spec(tmp_path, tiny_llama, more=more), replace=True).versions[0].cache == "hit"


def test_a_publish_shares_the_files_of_the_cache_and_later_ones_leave_them_alone(
    tiny_llama: Path, tmp_path: Path
) -> None:
    build(write_spec(tmp_path, tiny_llama))
    cache = tmp_path / "models.forge" / "cache"
    (published,) = (tmp_path / "models").glob("*/1/openvino_model.bin")
    (cached,) = cache.glob("engines/*/files/openvino_model.bin")
    before = contents(cache / "engines")

    assert published.samefile(cached)
    build(write_spec(tmp_path, tiny_llama, versions=f"1: {INT4}"), replace=True)
    build(write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}"), replace=True)

    assert contents(cache / "engines").items() >= before.items()


def test_repositories_can_share_a_cache(tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONFORGE_CACHE", str(tmp_path / "shared"))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert run(["build", "-f", str(write_spec(tmp_path / name, tiny_llama)), "--json"]) == 0

    assert not (tmp_path / "two" / "models.forge" / "cache").exists()
    engines = [tmp_path / name / "models" / "tiny_engine_v1" / "1" / "openvino_model.bin" for name in ("one", "two")]
    assert engines[0].samefile(engines[1])


def test_a_changed_checkpoint_is_another_one(tmp_path: Path) -> None:
    checkpoint = write_llama(tmp_path / "checkpoint", max_position=4096)
    spec = write_spec(tmp_path, checkpoint)
    build(spec)
    write_llama(checkpoint, max_position=4096, seed=1)

    (line,) = [line for line in told(spec, replace=True) if "engine: not from" in line]

    assert "changed: checkpoint " in line


def test_a_damaged_engine_is_compiled_again(tiny_llama: Path, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama)
    build(spec)
    unpublish(tmp_path)
    (weights,) = (tmp_path / "models.forge" / "cache").glob("engines/*/files/openvino_model.bin")
    size = weights.stat().st_size
    weights.chmod(0o644)
    weights.write_bytes(weights.read_bytes()[:-10])

    said = told(spec)

    fault = f"damaged there: openvino_model.bin has {size - 10} bytes instead of {size}"
    assert f"tiny version 1: engine: not from the build cache: {fault}" in said
    assert (tmp_path / "models" / "tiny_engine_v1" / "1" / "openvino_model.bin").stat().st_size == size


def test_a_checkpoint_that_changes_while_it_is_converted_has_no_name(tmp_path: Path) -> None:
    checkpoint = write_llama(tmp_path / "checkpoint", max_position=4096)

    def on_event(line: str) -> None:
        if line.startswith("wrote"):
            write_llama(checkpoint, max_position=4096, seed=1)

    with pytest.raises(CheckpointError, match="changed while it was being converted"):
        build(write_spec(tmp_path, checkpoint), on_event=on_event)

    assert not list(tmp_path.glob("models.forge/cache/*/[!.]*/entry.json"))
    assert states(build(write_spec(tmp_path, checkpoint))) == {1: "new"}


def test_explain_names_what_differs_and_dry_run_writes_nothing(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(write_spec(tmp_path, tiny_llama))
    before = stamps(tmp_path)
    spec = write_spec(tmp_path, tiny_llama, versions=BOTH, more="    limits: {max_batch_size: 2, max_seq_len: 4096}\n")
    spec_stamp = {"forge.yaml": stamps(tmp_path)["forge.yaml"]}

    assert run(["build", "-f", str(spec), "--replace", "--explain", "--dry-run", "--json"]) == 0

    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert "    limits.max_batch_size 32 → 2" in lines
    assert "    engine.precision int8 → int4" in lines
    looks = json.loads(printed.out)["cache"]
    assert [(look["label"], look["noun"], look["hit"]) for look in looks] == [
        ("tiny version 1", "engine", False),
        ("tiny version 1", "TensorRT-LLM checkpoint", True),
        ("tiny version 2", "engine", False),
        ("tiny version 2", "TensorRT-LLM checkpoint", True),
    ]
    assert stamps(tmp_path) == before | spec_stamp


def test_the_result_says_how_much_the_cache_holds(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", "-f", str(write_spec(tmp_path, tiny_llama)), "--json"]) == 0

    result = json.loads(capsys.readouterr().out)

    files = [path for path in tmp_path.glob("models.forge/cache/*/*/files/*") if path.is_file()]
    assert result["cache"] == {
        "folder": str(tmp_path / "models.forge" / "cache"),
        "entries": 2,
        "size_bytes": sum(path.stat().st_size for path in files),
    }
    assert result["versions"][0]["cache"] == "miss"


def test_a_cache_on_another_file_system_is_copied_from(tiny_llama: Path, tmp_path: Path) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        build(write_spec(tmp_path, tiny_llama), cache=Path(folder))

        (cached,) = Path(folder).glob("engines/*/files/openvino_model.bin")
        published = tmp_path / "models" / "tiny_engine_v1" / "1" / "openvino_model.bin"
        assert published.read_bytes() == cached.read_bytes()
        assert published.stat().st_dev != cached.stat().st_dev


def test_the_progress_of_a_conversion_is_told(tiny_llama: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    build_spec(load_spec(write_spec(tmp_path, tiny_llama)), BuildOptions(), on_progress=lambda *done: told.append(done))

    assert told[-1][0] == told[-1][1] > 0


@pytest.mark.parametrize("place", ["models", "models/tiny", "link/cache"])
def test_a_cache_in_the_repository_is_refused(tiny_llama: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "models")

    with pytest.raises(BuildError, match=f"{place}: lies in the model repository .*/models, where every folder is a"):
        build(write_spec(tmp_path, tiny_llama), cache=tmp_path / place)
    assert not (tmp_path / "models").exists()
