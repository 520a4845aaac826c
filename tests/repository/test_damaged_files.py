"""Files of a repository that somebody else wrote, or damaged: lint says so or passes over them, and never fails."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.repository.specs import make_manifest
from tests.repository.trees import build_tree
from tests.support.trtllm_engines import write_trtllm_engine
from tritonforge.errors import BuildError, RepositoryError, TritonforgeError
from tritonforge.formats.trtllm_engine import read_engine_folder
from tritonforge.releases.table import find_release
from tritonforge.repository.layout import served_versions
from tritonforge.repository.lint import Finding, lint
from tritonforge.repository.manifest import read_manifest
from tritonforge.repository.pbtxt import ParseProblem, try_parse
from tritonforge.repository.routes import parse_routes

DEEP = "[" * 100_000
LARGE_WEIGHT = f'{{"weights": {{"1": 1{"0" * 400}}}, "salt": ""}}'
PATH = 'parameters { key: "gpt_model_path" value { string_value: "/m/tiny_engine_v1/1" } }'


def codes(found: list[Finding]) -> set[str]:
    return {finding.code for finding in found}


def engine_model(root: Path, config: str) -> Path:
    text = f'backend: "tensorrtllm"\n{PATH}\n{config}\n'
    build_tree(root, {"tiny_engine_v1/config.pbtxt": text, "tiny/config.pbtxt": 'backend: "python"'})
    write_trtllm_engine(root / "tiny_engine_v1" / "1", "0.16.0")
    return root


@pytest.mark.parametrize(
    "config",
    [
        'input [ { name: "input_ids" data_type: 99 dims: [ 1 ] } ]',
        "instance_group [ { kind: 99 } ]",
        f'parameters {{ key: "max_seq_len" value {{ string_value: "{"9" * 5000}" }} }}',
        f'parameters {{ key: "tensorrt_llm_release" value {{ string_value: "0.{"9" * 5000}.0" }} }}',
        f"parameters {{ key: 'routes' value {{ string_value: '{DEEP}' }} }}",
        f"parameters {{ key: 'routes' value {{ string_value: '{LARGE_WEIGHT}' }} }}",
        "instance_group [ { count: -9223372036854775808 } ]",
    ],
    ids=["data type", "instance kind", "long number", "release", "nested routes", "large weight", "out of range"],
)
def test_lint_reads_every_config(config: str, tmp_path: Path) -> None:
    assert lint(engine_model(tmp_path, config))


def test_a_number_beyond_all_limits_is_above_the_engines(tmp_path: Path) -> None:
    config = f'parameters {{ key: "max_seq_len" value {{ string_value: "{"9" * 5000}" }} }}'
    assert "trtllm-limits" in codes(lint(engine_model(tmp_path, config)))


def test_an_ensemble_may_join_tensors_of_unnamed_types(tmp_path: Path) -> None:
    step = 'step [ { model_name: "m" model_version: -1 input_map { key: "IN" value: "A" } } ]'
    tensors = 'input [ { name: "A" data_type: 98 dims: [ 1 ] } ]'
    files = {
        "e/config.pbtxt": f'platform: "ensemble"\n{tensors}\nensemble_scheduling {{ {step} }}',
        "m/config.pbtxt": 'backend: "python"\ninput [ { name: "IN" data_type: 99 dims: [ 1 ] } ]',
    }
    found = [finding for finding in lint(build_tree(tmp_path, files)) if finding.code == "ensemble-type"]
    assert "which is 99" in found[0].message
    assert "which is 98" in found[0].message


@pytest.mark.parametrize("name", ["²", "٣", "0003", "+3", "1_0", "9" * 200])
def test_a_folder_that_is_no_number_is_no_version_of_a_gateway(name: str, tmp_path: Path) -> None:
    build_tree(tmp_path, {f"tiny/1/versions/{name}/serving.json": '{"dialect": "?"}'})
    assert served_versions(tmp_path / "tiny") == {}
    assert "dialect-mismatch" not in codes(lint(tmp_path))


@pytest.mark.parametrize("text", [DEEP, '{"limits": {"max_seq_len": Infinity}}', '{"limits": [1]}', "[]"])
def test_a_gateway_whose_limits_cannot_be_read(text: str, tmp_path: Path) -> None:
    root = build_tree(engine_model(tmp_path, ""), {"tiny/1/versions/1/serving.json": text})
    assert "trtllm-gateway-limits" not in codes(lint(root))


@pytest.mark.parametrize("text", ["!!int ''", "!!float ''", "!!timestamp noon", "!!bool perhaps", DEEP, "? [a]\n: b"])
def test_arguments_that_yaml_cannot_make_sense_of(text: str, tmp_path: Path) -> None:
    kind = 'parameters { key: "engine_kind" value { string_value: "llmapi" } }'
    files = {"tiny_engine_v1/config.pbtxt": f'backend: "python"\n{kind}', "tiny_engine_v1/1/model.yaml": text}
    assert "engine-arguments" in codes(lint(build_tree(tmp_path, files)))


@pytest.mark.parametrize(
    "change",
    [
        {"files": [1]},
        {"files": {"rank0.engine": "large"}},
        {"tools": 3},
        {"settings": "none"},
        {"version": "one"},
        {"release": 16},
        {"kind": None},
        {"parents": [1]},
        {"schema": float("inf")},
    ],
    ids=str,
)
def test_a_manifest_of_other_types_is_broken(change: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "tiny_engine_v1" / "1" / "forge-manifest.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(dataclasses.asdict(make_manifest()) | change))
    with pytest.raises(RepositoryError, match="not a readable manifest"):
        read_manifest(path)
    assert "manifest-broken" in codes(lint(tmp_path))


def test_a_manifest_that_is_nested_without_end_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "forge-manifest.json"
    path.write_text(DEEP)
    with pytest.raises(RepositoryError, match="not a readable manifest"):
        read_manifest(path)


@pytest.mark.parametrize("weight", ["1" + "0" * 400, DEEP], ids=["large", "nested"])
def test_routes_beyond_what_python_reads(weight: str) -> None:
    with pytest.raises(RepositoryError, match="expected JSON with weights"):
        parse_routes(f'{{"weights": {{"1": {weight}}}, "salt": ""}}', source="here")


def test_an_engine_that_is_a_link_to_itself(tmp_path: Path) -> None:
    folder = engine_model(tmp_path, "") / "tiny_engine_v1" / "1"
    (folder / "rank0.engine").unlink()
    (folder / "rank0.engine").symlink_to("rank0.engine")
    with pytest.raises(TritonforgeError, match=r"rank0\.engine"):
        read_engine_folder(folder)
    assert "trtllm-engine" in codes(lint(tmp_path))


def test_an_engine_that_is_a_link_to_nothing(tmp_path: Path) -> None:
    folder = write_trtllm_engine(tmp_path / "engine", "0.16.0").path
    (folder / "rank0.engine").unlink()
    (folder / "rank0.engine").symlink_to("gone")
    with pytest.raises(BuildError, match=r"rank0\.engine"):
        read_engine_folder(folder)


def test_a_release_of_many_digits_is_unknown() -> None:
    with pytest.raises(TritonforgeError, match="0.999"):
        find_release(f"0.{'9' * 5000}.0")


def test_a_number_that_protobuf_has_no_room_for_is_no_config() -> None:
    assert isinstance(try_parse("instance_group [ { count: -9223372036854775808 } ]"), ParseProblem)
