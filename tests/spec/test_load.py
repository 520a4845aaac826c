"""Reading forge.yaml from disk: files of every kind, places of errors, paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.examples import TENSORRT_LLM, TWO_VERSIONS, changed, load_text, refused
from tritonforge.errors import SpecInvalid, SpecNotFound
from tritonforge.spec.load import MAX_FILE_BYTES, load_spec
from tritonforge.spec.openvino import OpenVinoEngineSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec


def test_the_example_loads_with_its_values_and_defaults(tmp_path: Path) -> None:
    (model,) = load_text(tmp_path, TWO_VERSIONS).spec.models
    engine = model.versions[2].engine
    assert isinstance(engine, OpenVinoEngineSpec)
    assert (model.name, list(model.versions), model.traffic) == ("smollm2", [1, 2], {1: 100})
    assert (engine.precision, engine.plugins.context_fmha, engine.runtime.num_threads) == ("int8", True, None)
    assert model.serving.dynamic_batching is not None
    assert model.serving.dynamic_batching.max_queue_delay_microseconds == 1000
    assert model.tests[0].contains == "Paris"


def test_the_whole_tensorrt_llm_block_loads(tmp_path: Path) -> None:
    engine = load_text(tmp_path, TENSORRT_LLM).spec.models[0].versions[1].engine
    assert isinstance(engine, TensorRtLlmEngineSpec)
    assert (engine.release, engine.executor, engine.plugins.gemm) == ("0.16.0", "docker", "auto")


def test_paths_are_relative_to_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_text(tmp_path, TWO_VERSIONS)
    monkeypatch.chdir(tmp_path)
    loaded = load_spec(Path("forge.yaml"))
    assert loaded.repository == tmp_path / "model_repository"
    assert loaded.resolve("/models/a.gguf") == Path("/models/a.gguf")
    assert loaded.resolve("~/a") == Path.home() / "a"


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(SpecNotFound, match=r"nothing\.yaml: no such specification"):
        load_spec(tmp_path / "nothing.yaml")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecInvalid, match="is a directory; expected a YAML file"):
        load_spec(tmp_path)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing but a comment\n", "---\n", "null\n", "\ufeff"])
def test_an_empty_file_says_which_keys_are_expected(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, text).problem == "is empty; expected the keys schema, repository and models"


@pytest.mark.parametrize(
    ("text", "found"), [("- 1\n", "a list"), ("hello\n", "'hello'"), ("3\n", "3"), ("true", "true")]
)
def test_a_root_that_is_no_mapping_is_refused(tmp_path: Path, text: str, found: str) -> None:
    error = refused(tmp_path, text)
    assert (error.line, error.problem) == (1, f"holds {found}; expected the keys schema, repository and models")


def test_a_byte_that_is_not_utf8_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "forge.yaml"
    path.write_bytes(b"schema: 1\nrepository: caf\xe9\n")
    with pytest.raises(SpecInvalid, match="the byte 0xE9 is not UTF-8 text") as caught:
        load_spec(path)
    assert caught.value.line == 2


def test_a_byte_order_mark_is_taken_as_what_it_is(tmp_path: Path) -> None:
    assert load_text(tmp_path, "\ufeff" + TWO_VERSIONS).spec.schema_ == 1


def test_a_weight_file_given_by_mistake_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(MAX_FILE_BYTES))
    with pytest.raises(SpecInvalid, match=f"more than {MAX_FILE_BYTES} bytes"):
        load_spec(path)


def test_unknown_key_names_its_line_and_the_nearest_known_key(tmp_path: Path) -> None:
    error = refused(tmp_path, changed("max_input_len", "max_imput_len"))
    assert (error.line, error.key) == (10, "models[0].limits.max_imput_len")
    assert str(error).startswith(f"{tmp_path / 'forge.yaml'}:10: models[0].limits.max_imput_len: is not a known key")
    assert "expected one of max_batch_size, max_seq_len, max_input_len" in error.problem
    assert error.hint == "did you mean 'max_input_len'?"


def test_a_key_at_the_wrong_place_names_its_right_place(tmp_path: Path) -> None:
    error = refused(tmp_path, changed("  - name: smollm2 ", "  - precision: int8\n    name: smollm2 "))
    assert error.key == "models[0].precision"
    assert error.hint == "'precision' belongs to models[].versions.N.engine"


def test_every_problem_is_listed_in_one_run_by_line(tmp_path: Path) -> None:
    text = changed(
        "kind: openvino, precision: int8",
        "kind: openvin",
        changed("{1: 100}", "{1: -1}", changed("schema: 1", "schema: 2")),
    )
    error = refused(tmp_path, text)
    lines = str(error).splitlines()
    assert [line.split(": ")[0].rpartition(":")[2] for line in lines] == ["1", "8", "9"]
    assert (error.line, error.key) == (1, "schema")
    assert lines[1].endswith(
        "models[0].versions.2.engine.kind: is 'openvin'; expected openvino, tensorrt_llm, vllm or llmapi "
        "(did you mean 'openvino'?)"
    )
    assert lines[2].endswith("models[0].traffic.1: is -1; expected at least 0")
    assert list(error.also) == lines[1:]


def test_a_problem_in_a_block_names_the_line_of_the_key(tmp_path: Path) -> None:
    error = refused(
        tmp_path,
        changed(
            "          plugins: {context_fmha: true", "          plugins:\n            {context_fmha: 3", TENSORRT_LLM
        ),
    )
    assert (error.line, error.key) == (16, "models[0].versions.1.engine.plugins.context_fmha")


def test_missing_keys_point_at_the_mapping_that_lacks_them(tmp_path: Path) -> None:
    error = refused(tmp_path, changed("    checkpoint: ./checkpoints/SmolLM2-135M-Instruct\n", ""))
    assert (error.line, error.key) == (4, "models[0].checkpoint")
    assert error.problem.startswith("is missing; expected: folder in Hugging Face form, or a .gguf file")
