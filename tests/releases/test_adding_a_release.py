"""Adding a release is adding a row: what is known of the newest line applies to it, and nothing else changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.spec.examples import TENSORRT_LLM, changed, load_text, refused
from tests.support.trtllm_parser import parse
from tritonforge.cli.main import run
from tritonforge.engine.tensorrt_llm.argv import build_argv
from tritonforge.releases import files
from tritonforge.releases.backend import backend_line
from tritonforge.releases.build_options import build_options, where_option_exists
from tritonforge.releases.table import all_releases, find_release, release_of_triton
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

ROW = (
    '  - {release: "1.3.0", container: "26.08", triton: "2.72.0", tensorrt: "10.15.0", cuda: "13.2.0", '
    'driver: "595.10", python: "3.12.3", image_gb: 15}\n'
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the data files that the package reads instead of its own."""
    folder = tmp_path / "data"
    shutil.copytree(files.FOLDER, folder)
    monkeypatch.setattr(files, "FOLDER", folder)
    return folder


def add(data: Path, name: str, text: str) -> None:
    with (data / f"{name}.yaml").open("a", encoding="utf-8") as file:
        file.write(text)
    files.read_file.cache_clear()


def test_a_row_is_a_release(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = all_releases()
    newest = build_options(find_release("1.2.1"))
    add(data, "containers", ROW)

    release = find_release("1.3.0")

    assert all_releases() == (*before, release)
    assert (release.line, release.container.tag) == ("1.3", "26.08")
    assert release_of_triton("2.72.0") == (release,)
    assert set(build_options(release)) == set(newest)
    assert {option.evidence for option in build_options(release).values()} == {"inferred"}
    assert backend_line(release).parameters == backend_line(find_release("1.2.1")).parameters
    spec = load_text(tmp_path, changed('"0.16.0"', '"1.3.0"', TENSORRT_LLM)).spec
    engine = spec.models[0].versions[1].engine
    assert isinstance(engine, TensorRtLlmEngineSpec)
    argv = build_argv(engine, LimitsSpec(), dtype="float16", checkpoint="/checkpoint", out="/engine")
    assert parse(release, argv[1:]).max_seq_len == 4096
    assert run(["releases", "1.3.0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["containers"][0]["image"].endswith(":26.08-trtllm-python-py3")


def test_without_the_row_the_release_is_unknown(tmp_path: Path) -> None:
    error = refused(tmp_path, changed('"0.16.0"', '"1.3.0"', TENSORRT_LLM))
    assert error.key == "models[0].versions.1.engine.release"
    assert "is '1.3.0'; expected one of the release table; the nearest there: 1.2.1" in error.problem


def test_a_container_with_an_image_of_its_own_is_a_row_with_an_image(data: Path) -> None:
    add(data, "containers", ROW.replace("{release", '{image: "registry.example/triton:custom", release'))
    assert find_release("1.3.0").container.image == "registry.example/triton:custom"


def test_an_option_of_the_new_release_is_a_row(data: Path, tmp_path: Path) -> None:
    add(data, "containers", ROW)
    options = data / "build_options.yaml"
    text = options.read_text().replace(
        "options:\n", 'options:\n  sparse_attention: [{type: switch, since: "1.3", default: disable}]\n', 1
    )
    options.write_text(text)

    assert where_option_exists("sparse_attention") == "1.3 on"
    asked = "executor: docker\n          options: {sparse_attention: enable}"
    error = refused(tmp_path, changed("executor: docker", asked, TENSORRT_LLM))
    assert error.key == "models[0].versions.1.engine.options.sparse_attention"
    assert "is no option of trtllm-build 0.16.0; expected a release that has it: 1.3 on" in error.problem
    assert load_text(tmp_path, changed('"0.16.0"', '"1.3.0"', changed("executor: docker", asked, TENSORRT_LLM)))


def test_an_option_that_comes_back_is_said_to_be_in_both_places(data: Path) -> None:
    options = data / "build_options.yaml"
    rows = '[{type: flag, until: "0.10"}, {type: flag, since: "0.13", until: "0.13"}, {type: flag, since: "1.1"}]'
    options.write_text(options.read_text().replace("options:\n", f"options:\n  refit: {rows}\n", 1))
    assert where_option_exists("refit") == "0.9 to 0.10 and 0.13 and 1.1 on"
