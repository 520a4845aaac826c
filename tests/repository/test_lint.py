"""The lint as a whole: places, other people's layouts, staged models, and that no text makes it fail."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.repository.specs import copy_models
from tests.repository.trees import PYTHON, TENSORS, build_tree, findings_of, python_model
from tritonforge.cli.main import run
from tritonforge.errors import RepositoryError
from tritonforge.repository.lint import Severity, explanation_of, lint
from tritonforge.repository.lint.source import find_line, read_fields

CONFIG_PIECES = st.sampled_from(
    [
        "name",
        "input",
        "dims",
        ":",
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        ",",
        '"x',
        '"a"',
        "'",
        "\\",
        "#",
        "\n",
        " ",
        "1",
        "$",
        "{{",
        "${a}",
    ]
)


def test_a_rendered_model_has_nothing_to_report(tmp_path: Path, tiny_v1_v2: Path) -> None:
    copy_models(tiny_v1_v2, tmp_path)

    assert lint(tmp_path) == []


def test_staged_models_are_checked_with_the_published_ones_around_them(
    tmp_path: Path, tiny_v1: Path, tiny_v1_v2: Path
) -> None:
    copy_models(tiny_v1, tmp_path / "published")
    build_tree(tmp_path / "published", {"broken/config.pbtxt": "?"})
    copy_models(tiny_v1_v2, tmp_path / "all")
    (tmp_path / "staging").mkdir()
    for name in ("tiny", "tiny_engine_v2"):
        (tmp_path / "all" / name).rename(tmp_path / "staging" / name)

    assert lint(tmp_path / "staging", beside=tmp_path / "published") == []
    assert {finding.code for finding in lint(tmp_path / "staging")} == {"route-target"}


@pytest.mark.parametrize("change", ["truncated", "missing"])
def test_a_damaged_engine_is_found_by_its_size(tmp_path: Path, tiny_v1: Path, change: str) -> None:
    copy_models(tiny_v1, tmp_path)
    engine = tmp_path / "tiny_engine_v1" / "1" / "openvino_model.bin"
    if change == "truncated":
        engine.write_bytes(engine.read_bytes()[:-1])
    else:
        engine.unlink()

    (finding,) = lint(tmp_path)

    assert (finding.code, finding.severity, finding.path) == ("engine-truncated", Severity.ERROR, engine)


def test_all_mistakes_of_a_config_are_found_in_one_run(tmp_path: Path) -> None:
    config = 'nam: "m"\nbackend: "pyton"\nmax_batch_size: -1\ndynamic_batchin {}\n' + TENSORS

    found = {(finding.code, finding.line) for finding in lint(build_tree(tmp_path, python_model(config)))}

    assert {("unknown-field", 1), ("backend-unknown", 2), ("batch-size", 3), ("unknown-field", 4)} <= found


def test_an_unknown_field_points_to_the_nearest(tmp_path: Path) -> None:
    (finding,) = findings_of(tmp_path, python_model("max_batchsize: 4\n" + PYTHON), "unknown-field")

    assert finding.fix == "did you mean 'max_batch_size'?"


def test_nvidias_templates_are_reported_placeholder_by_placeholder(tmp_path: Path) -> None:
    config = """name: "tensorrt_llm"
backend: "${triton_backend}"
max_batch_size: ${triton_max_batch_size}
model_transaction_policy {
  decoupled: ${decoupled_mode}
}
parameters: {
  key: "gpt_model_path"
  value: {
    string_value: "${engine_dir}"
  }
}
parameters: {
  key: "max_attention_window_size"
  value: {
    string_value: "${max_attention_window_size}"
  }
}
"""

    findings = lint(build_tree(tmp_path, {"tensorrt_llm/config.pbtxt": config, "tensorrt_llm/1/": ""}))

    assert [(f.code, f.severity.value, f.line) for f in findings if f.line] == [
        ("placeholder", "error", 2),
        ("placeholder", "error", 3),
        ("placeholder", "error", 5),
        ("placeholder", "error", 10),
        ("placeholder", "warning", 16),
    ]


def test_a_config_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_bytes(b"\xff\xfe")

    assert [finding.code for finding in lint(tmp_path)] == ["config-parse"]


@given(st.lists(CONFIG_PIECES, max_size=40).map("".join) | st.text(max_size=60))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    fields = read_fields(text)

    assert all(1 <= field.line <= text.count("\n") + 1 for field in fields)


@given(text=st.lists(CONFIG_PIECES, max_size=40).map("".join))
def test_no_config_makes_the_lint_fail(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("fuzz")

    assert isinstance(lint(build_tree(root, python_model(text))), list)


def test_deeply_nested_text_is_read(tmp_path: Path) -> None:
    assert read_fields("a {" * 10_000)
    assert lint(build_tree(tmp_path, python_model("a {" * 10_000)))


def test_lines_are_found_in_lists_and_repeated_fields() -> None:
    text = "input [\n  { name: 'a' },\n  { name: 'b'\n dims: [\n1,\n2 ] }\n]\ninput {\n name: 'c' }\n"
    fields = read_fields(text)

    assert find_line(fields, ("input", 1)) == 3
    assert find_line(fields, ("input", 1, "dims", 1)) == 6
    assert find_line(fields, ("input", 2, "name")) == 9
    assert find_line(fields, ("input", 2, "dims")) == 8
    assert find_line(fields, ("output",)) is None


def test_a_hundred_models_take_less_than_a_few_seconds(tmp_path: Path) -> None:
    files: dict[str, str] = {}
    for index in range(100):
        files |= python_model(f'name: "m{index}"\n' + PYTHON, name=f"m{index}")
    build_tree(tmp_path, files)
    start = time.perf_counter()

    assert lint(tmp_path) == []

    assert time.perf_counter() - start < 5  # far above the 0.2 s of an idle machine: this catches a wrong order only


def test_a_missing_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="nothing: no such folder"):
        lint(tmp_path / "nothing")


def test_rules_explain_themselves() -> None:
    assert "version 0" in explanation_of("ensemble-version")
    with pytest.raises(RepositoryError) as caught:
        explanation_of("ensemble-versions")
    assert caught.value.hint == "did you mean 'ensemble-version'?"


def test_the_command_prints_findings_as_json_and_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build_tree(tmp_path, python_model("max_batch_size: -1\n" + PYTHON))

    code = run(["lint", str(tmp_path), "--json"])

    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert code == 1
    assert set(finding) == {"code", "severity", "path", "line", "message", "fix"}
    assert (finding["code"], finding["severity"], finding["line"]) == ("batch-size", "error", 1)
    assert finding["path"] == str(tmp_path / "m" / "config.pbtxt")


def test_the_command_exits_with_0_without_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build_tree(tmp_path, python_model(PYTHON))

    assert run(["lint", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "error: 0, warning: 0, info: 0\n"


def test_the_command_shows_place_message_and_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build_tree(tmp_path, python_model("max_batchsize: 4\n" + PYTHON))

    assert run(["lint", str(tmp_path)]) == 1

    out = capsys.readouterr().out
    assert f"{tmp_path}/m/config.pbtxt:1: error: column 1: there is no field 'max_batchsize'" in out
    assert "fix: did you mean 'max_batch_size'?" in out


def test_the_command_explains_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", "--explain", "python-cache"]) == 0
    assert "reloads a version" in capsys.readouterr().out


def test_the_command_needs_something_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint"]) == 2
    assert "REPOSITORY" in capsys.readouterr().err
