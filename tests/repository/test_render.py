"""Rendering: what is written, that it parses, and that wrong templates are refused before anything is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.repository.specs import make_engine, make_manifest, make_model, make_tokenizer, read_served, render_model
from tritonforge.errors import ConfigInvalid, PublishFailed, RepositoryError, TemplateError
from tritonforge.repository.layout import find_version, list_models
from tritonforge.repository.pbtxt import parameter_of, parse_config, quoted, read_config
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.runtime_copy import compile_python
from tritonforge.repository.serving import ServedVersion
from tritonforge.repository.templates import TemplateTree


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_quoting(text: str) -> None:
    config = parse_config(f"name: {quoted(text)}", file="config.pbtxt")

    assert config.name == text


def test_json_stays_readable_when_quoted() -> None:
    assert quoted('{"a": 1}') == "'{\"a\": 1}'"


def test_an_engine_is_rendered_with_its_own_version_folder_and_limits(tmp_path: Path) -> None:
    model = make_model(limits={"max_batch_size": 7, "max_input_len": 10, "max_seq_len": 20})
    engine = make_engine(tmp_path / "engine")

    folder = render_engine(model.resolved(2), engine, tmp_path, mount="/models", manifest=make_manifest(version=2))

    config = read_config(folder / "config.pbtxt")
    assert folder.name == config.name == "tiny_engine_v2"
    assert config.max_batch_size == 7
    assert list(config.version_policy.specific.versions) == [2]
    assert config.model_transaction_policy.decoupled
    assert parameter_of(config, "max_seq_len") == "20"
    assert (folder / "2" / "model.py").is_file()
    assert not config.HasField("model_metrics")


def test_engine_files_are_links_and_their_sizes_are_recorded(tmp_path: Path) -> None:
    engine = make_engine(tmp_path / "engine", content=b"12345")

    folder = render_engine(make_model().resolved(1), engine, tmp_path, mount="/models", manifest=make_manifest())

    assert (folder / "1" / "openvino_model.bin").stat().st_ino == (engine.path / "openvino_model.bin").stat().st_ino
    manifest = json.loads((folder / "1" / "forge-manifest.json").read_text())
    assert manifest["files"] == {"engine.json": 2, "openvino_model.bin": 5, "openvino_model.xml": 6}


def test_serving_settings_reach_the_config(tmp_path: Path) -> None:
    serving = {
        "instance_group": [{"kind": "KIND_GPU", "count": 2, "gpus": [0, 3]}, {"kind": "KIND_CPU"}],
        "dynamic_batching": {
            "preferred_batch_size": [4, 8],
            "max_queue_delay_microseconds": 500,
            "preserve_ordering": True,
            "default_queue_policy": {"default_timeout_microseconds": 9, "max_queue_size": 3},
        },
    }
    version = make_model(serving=serving).resolved(1)

    folder = render_engine(version, make_engine(tmp_path / "engine"), tmp_path, mount="/models")

    config = read_config(folder / "config.pbtxt")
    assert [(group.count, list(group.gpus)) for group in config.instance_group] == [(2, [0, 3]), (1, [])]
    batching = config.dynamic_batching
    assert list(batching.preferred_batch_size) == [4, 8]
    assert (batching.max_queue_delay_microseconds, batching.preserve_ordering) == (500, True)
    assert batching.default_queue_policy.max_queue_size == 3


def test_histogram_buckets_are_written_only_for_servers_that_know_them(tmp_path: Path) -> None:
    engine = make_engine(tmp_path / "engine")

    folder = render_engine(make_model().resolved(1), engine, tmp_path, mount="/models", with_histograms=True)

    control = read_config(folder / "config.pbtxt").model_metrics.metric_control[0]
    assert control.metric_identifier.family == "nv_inference_first_response_histogram_ms"
    assert control.histogram_options.buckets[-1] == 30000


def test_a_gateway_carries_each_version_with_its_tokenizer(tmp_path: Path) -> None:
    render_model(make_model(), tmp_path / "cache", tmp_path / "out", numbers=(1, 2))

    gateway = tmp_path / "out" / "tiny"
    serving = json.loads((gateway / "1" / "versions" / "2" / "serving.json").read_text())
    assert serving["engine_model"] == "tiny_engine_v2"
    assert serving["tokenizer"] == {"kind": "huggingface", "eos_token_ids": [2], "pad_token_id": 2}
    routes = json.loads(parameter_of(read_config(gateway / "config.pbtxt"), "routes") or "")
    assert routes == {"weights": {"1": 100, "2": 0}, "salt": "tiny", "experiment": None, "shadow": None}


def test_a_gateway_on_disk_can_be_rendered_again_from_what_it_carries(tmp_path: Path) -> None:
    model = make_model()
    render_model(model, tmp_path / "cache", tmp_path / "out", numbers=(1, 2))

    served = read_served(tmp_path / "out" / "tiny")
    again = render_gateway(model, served, tmp_path / "again", weights={1: 100})

    before, after = (
        {p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()}
        for f in (tmp_path / "out" / "tiny" / "1" / "versions", again / "1" / "versions")
    )
    assert before == after


@pytest.mark.parametrize("weights", [{3: 1.0}, {1: -1.0}, {1: 0.0}, {1: float("nan")}, {}])
def test_weights_that_route_nothing_are_refused(tmp_path: Path, weights: dict[int, float]) -> None:
    model = make_model()
    engine = make_engine(tmp_path / "engine")
    served = [ServedVersion.of(model.resolved(1), engine, make_tokenizer(tmp_path / "tokenizer"))]

    with pytest.raises(RepositoryError, match="tiny"):
        render_gateway(model, served, tmp_path / "out", weights=weights)

    assert not (tmp_path / "out").exists()


def test_published_models_are_found_and_hand_made_ones_left_alone(tmp_path: Path) -> None:
    repository = tmp_path / "out"
    render_model(make_model(), tmp_path / "cache", repository, numbers=(1, 2))
    (repository / "resnet" / "1").mkdir(parents=True)

    (model,) = list_models(repository)

    assert model.name == "tiny"
    assert [(version.number, version.engine_model) for version in model.versions] == [
        (1, "tiny_engine_v1"),
        (2, "tiny_engine_v2"),
    ]
    assert find_version(repository, "tiny", 3) is None


def test_importing_a_rendered_model_writes_nothing_into_its_folder(tmp_path: Path) -> None:
    package = tmp_path / "model" / "1" / "tritonforge_runtime"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("VALUE = 41\n")
    (package.parent / "model.py").write_text("from .tritonforge_runtime.part import VALUE\n")
    compile_python(tmp_path / "model")
    (package / "part.py").write_text("VALUE = 42\n")  # unchecked: the compiled file counts, whatever the source says
    before = _stamps(tmp_path / "model")

    code = "import importlib; print(importlib.import_module('1.model').VALUE)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "model", capture_output=True, text=True)

    assert done.stdout == "41\n", done.stderr
    assert _stamps(tmp_path / "model") == before


def test_every_python_file_of_a_rendered_tree_is_compiled(tmp_path: Path) -> None:
    for folder in render_model(make_model(), tmp_path / "cache", tmp_path / "out"):
        sources = list(folder.rglob("*.py"))
        assert sources
        for source in sources:
            (compiled,) = (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc")
            assert int.from_bytes(compiled.read_bytes()[4:8], "little") == 0b01  # hash-based, source not checked


def test_an_unknown_kind_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="gateway, llmapi, openvino"):
        TemplateTree().render("onnxx", make_manifest(), version=1)


def test_a_missing_variable_is_an_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "openvino").mkdir()
    (tmp_path / "openvino" / "config.pbtxt.j2").write_text('name: {{ name | quoted }}\nbackend: "{{ bakend }}"\n')

    with pytest.raises(TemplateError, match="'bakend' is undefined") as caught:
        render_engine(
            make_model().resolved(1),
            make_engine(tmp_path / "engine"),
            tmp_path / "out",
            mount="/models",
            templates=TemplateTree([tmp_path]),
        )

    assert caught.value.line == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: {{ name | quoted }}\nmax_batch_size: ${size}\n", "config.pbtxt.*:2: .*column 17"),
        ('name: "other"\n', "name is 'other'; expected 'tiny_engine_v1'"),
    ],
)
def test_a_config_that_triton_would_refuse_is_not_written(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "openvino").mkdir()
    (tmp_path / "openvino" / "config.pbtxt.j2").write_text(text)
    engine = make_engine(tmp_path / "engine")

    with pytest.raises(ConfigInvalid, match=problem):
        render_engine(
            make_model().resolved(1), engine, tmp_path / "out", mount="/m", templates=TemplateTree([tmp_path])
        )

    assert not (tmp_path / "out").exists()


def test_a_template_with_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "openvino").mkdir()
    (tmp_path / "openvino" / "config.pbtxt.j2").write_text("name: 1\n{% if %}\n")

    with pytest.raises(TemplateError, match="config.pbtxt.j2:2"):
        TemplateTree([tmp_path]).render("openvino", make_manifest(), version=1)


def test_a_missing_engine_file_is_named(tmp_path: Path) -> None:
    engine = make_engine(tmp_path / "engine")
    (engine.path / "openvino_model.bin").unlink()

    with pytest.raises(PublishFailed, match="openvino_model.bin"):
        render_engine(make_model().resolved(1), engine, tmp_path / "out", mount="/models")


def _stamps(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}
