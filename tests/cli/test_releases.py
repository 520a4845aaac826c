"""`tritonforge releases`."""

from __future__ import annotations

import json

import pytest

from tritonforge.cli.main import run
from tritonforge.releases.build_options import build_options
from tritonforge.releases.table import all_releases, find_release


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["releases", *arguments]) == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_it_lists_every_container_with_its_release(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys).splitlines()
    for release in all_releases():
        for container in release.containers:
            wanted = {release.name, container.tag, container.triton, container.tensorrt, container.cuda}
            assert any(wanted <= set(line.split()) for line in lines), wanted
    assert lines[-1] == "image: nvcr.io/nvidia/tritonserver:TAG-trtllm-python-py3"


def test_the_list_fits_into_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(printed(capsys).splitlines()) < 28 + 8  # no row was folded


def test_json_has_every_container_whole(capsys: pytest.CaptureFixture[str]) -> None:
    releases = json.loads(printed(capsys, "--json"))
    assert [one["release"] for one in releases] == [release.name for release in all_releases()]
    newest = releases[-1]["containers"][-1]
    assert newest["image"] == "nvcr.io/nvidia/tritonserver:26.07-trtllm-python-py3"
    assert (newest["triton"], newest["driver"], newest["python"]) == ("2.71.0", "590.44.01", "3.12.3")


def test_a_release_shows_its_containers_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "0.16.0")
    assert "24.12" in text
    assert "Options of trtllm-build 0.16.0" in text
    for name in build_options(find_release("0.16.0")):
        assert f" {name} " in text
    assert "inferred:" not in text
    assert "run: the release's own argument parser was run" in printed(capsys, "0.14.0")


def test_what_was_not_seen_is_said_to_be_inferred(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "0.19.0", "--options")
    row = next(line for line in text.splitlines() if " tokens_per_block " in line)
    assert "64 or 32" in row
    assert "inferred" in row
    assert "inferred: nothing of this line was seen" in text
    assert "25.05" not in text


def test_a_line_whose_preview_was_run_does_not_claim_the_release(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(printed(capsys, "0.16.0", "--options").split())
    assert "preview: the argument parser of a preview of this line was run (0.16.0.dev2024112600)" in text
    assert "the release's own argument parser was run" not in text


def test_options_as_json_say_since_default_and_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(printed(capsys, "0.13.0", "--options", "--json"))
    assert set(shown) == {"release", "line", "options"}
    options = {option["name"]: option for option in shown["options"]}
    paged = options["paged_kv_cache"]
    assert (paged["since"], paged["until"], paged["now"], paged["evidence"]) == ("0.9", None, "kv_cache_type", "run")
    assert (options["builder_opt"]["since"], options["builder_opt"]["until"]) == ("0.9", "0.13")
    assert (options["max_batch_size"]["default"], options["max_batch_size"]["key"]) == (256, "limits.max_batch_size")


def test_options_of_all_releases_say_where_they_exist(capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(printed(capsys, "--options", "--json"))
    options = {option["name"]: option for option in shown["options"]}
    assert options["weight_only_precision"]["lines"] == ["0.9", "0.10"]
    assert options["max_output_len"]["now"] == "max_seq_len"
    assert " 0.9 to 0.11 " in next(
        line for line in printed(capsys, "--options").splitlines() if " max_output_len " in line
    )


def test_the_backend_of_a_release_shows_parameters_and_tensors(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "0.16.0", "--backend")
    assert " kv_cache_free_gpu_mem_fraction " in text
    assert " request_output_len " in text
    assert "trtllm-build" not in text
    shown = json.loads(printed(capsys, "0.16.0", "--backend", "--json"))
    assert "input_ids" in [tensor["name"] for tensor in shown["backend"]["inputs"]]


def test_the_backend_needs_a_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["releases", "--backend"]) == 2
    assert "--backend needs a RELEASE" in capsys.readouterr().err


def test_an_unknown_release_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["releases", "0.16.5"]) == 2
    error = capsys.readouterr().err
    assert "'0.16.5' is not in the release table; expected one like 0.16.0 or 0.17.0" in error
    assert "hint: tritonforge releases lists the releases that are known" in error
