"""The JSON Schema of forge.yaml, judged by an independent validator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.spec.examples import TENSORRT_LLM, TWO_VERSIONS, changed
from tritonforge.cli.main import run
from tritonforge.spec.document import read_document
from tritonforge.spec.schema import homes_of, json_schema, place_of

SCHEMA = json_schema()


def as_json(text: str) -> Any:
    """The content of a YAML text as JSON has it: with text for keys."""
    return json.loads(json.dumps(read_document(text).value))


def described(node: Any, path: str = "") -> Iterator[tuple[str, str | None]]:
    if isinstance(node, dict):
        for key, value in node.get("properties", {}).items():
            yield f"{path}.{key}", value.get("description")
        for key, value in node.items():
            yield from described(value, f"{path}/{key}")
    if isinstance(node, list):
        for item in node:
            yield from described(item, path)


def test_it_is_a_valid_schema_of_its_dialect() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(SCHEMA)


def test_every_key_is_described_in_one_line() -> None:
    descriptions = dict(described(SCHEMA))
    assert len(descriptions) > 40
    assert [key for key, text in descriptions.items() if not text or "\n" in text] == []


@pytest.mark.parametrize("text", [TWO_VERSIONS, TENSORRT_LLM])
def test_it_accepts_the_examples(text: str) -> None:
    Draft202012Validator(SCHEMA).validate(as_json(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max_input_len", "max_imput_len"),
        ("schema: 1", "schema: 2"),
        ("      2: {", "      two: {"),
        ("precision: int8", "precision: int9"),
        ("max_batch_size: 32", "max_batch_size: true"),
        ("./checkpoints/SmolLM2-135M-Instruct", "hf:org/name"),
        ("- name: smollm2 ", "- name: ../smollm2 "),
        ("repository: ./model_repository\n", ""),
    ],
)
def test_it_refuses_what_the_reader_refuses(old: str, new: str) -> None:
    assert not Draft202012Validator(SCHEMA).is_valid(as_json(changed(old, new)))


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA
    assert run(["schema", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


def test_places_leave_out_what_only_pydantic_knows() -> None:
    place = place_of(("models", 0, "versions", 1, "engine", "openvino", "runtime", "num_threads"))
    assert place.path == ("models", 0, "versions", "1", "engine", "runtime", "num_threads")
    assert "kv_cache_gib" in place.siblings
    assert place_of(("models", 0, "versions", "x", "[key]")).path == ("models", 0, "versions", "x")


def test_homes_are_where_a_key_is_known() -> None:
    assert homes_of("count") == ("models[].versions.N.serving.instance_group[]", "models[].serving.instance_group[]")
    assert homes_of("gemm") == ("models[].versions.N.engine.plugins (kind: tensorrt_llm)",)
    assert homes_of("context_fmha") == ("models[].versions.N.engine.plugins",)
    assert homes_of("nothing") == ()
