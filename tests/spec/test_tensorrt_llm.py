"""The TensorRT-LLM block: what the release takes, and combinations that cannot work, refused with their line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.spec.examples import TENSORRT_LLM, changed, load_text, refused
from tests.spec.tensorrt_llm_blocks import ENGINE, PAGED, PLUGINS, RANGES, block, engine, everything, line
from tritonforge.spec.document import read_document
from tritonforge.spec.dump import dump_spec
from tritonforge.spec.schema import json_schema


def test_the_block_of_the_documentation_loads_as_written(tmp_path: Path) -> None:
    loaded = engine(tmp_path, TENSORRT_LLM)
    assert (loaded.release, loaded.precision, loaded.executor) == ("0.16.0", "float16", "docker")
    assert (loaded.plugins.paged_context_fmha, loaded.workers, loaded.multiple_profiles) == (False, 1, False)
    assert (loaded.kv_cache, loaded.group_size, loaded.embedding_sharding) == ("auto", 128, "none")
    assert (loaded.image, loaded.gpus, loaded.gpu_architecture, loaded.options) == (None, (), None, {})


def test_everything_that_may_be_said_is_taken(tmp_path: Path) -> None:
    loaded = engine(tmp_path, everything())
    assert (loaded.ranks, loaded.gpus, loaded.options["tokens_per_block"]) == (2, (2, 3), 64)


def test_everything_is_known_to_the_schema_and_is_written_as_it_was_read(tmp_path: Path) -> None:
    as_json = json.loads(json.dumps(read_document(everything()).value))
    Draft202012Validator(json_schema()).validate(as_json)
    spec = load_text(tmp_path, everything()).spec
    assert load_text(tmp_path, dump_spec(spec)).spec == spec


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("release", "0.16.3"),
        ("kv_cache", "int4"),
        ("group_size", 32),
        ("gpu_architecture", "hopper"),
        ("embedding_sharding", "rows"),
        ("options", {"Tokens": 1}),
        ("options", {"tokens_per_block": {}}),
    ],
)
def test_the_schema_refuses_what_it_can_know(key: str, value: object) -> None:
    as_json = json.loads(json.dumps(read_document(everything()).value))
    as_json["models"][0]["versions"]["1"]["engine"][key] = value
    assert not Draft202012Validator(json_schema()).is_valid(as_json)


@pytest.mark.parametrize("ranges", ["", RANGES])
def test_an_fp8_cache_is_taken_with_ranges_and_without(tmp_path: Path, ranges: str) -> None:
    assert engine(tmp_path, TENSORRT_LLM + line("kv_cache", "fp8") + ranges).kv_cache == "fp8"


@pytest.mark.parametrize("release", ["0.9.0", "0.17.0.post1", "1.0.3.2510", "1.2.1"])
def test_every_release_of_the_table_is_taken(tmp_path: Path, release: str) -> None:
    assert engine(tmp_path, changed('"0.16.0"', f'"{release}"', TENSORRT_LLM)).release == release


def test_an_unknown_release_names_the_nearest_known_ones(tmp_path: Path) -> None:
    error = refused(tmp_path, changed('"0.16.0"', '"0.16.3"', TENSORRT_LLM))
    assert (error.line, error.key) == (11, f"{ENGINE}.release")
    assert error.problem == "is '0.16.3'; expected one of the release table; the nearest there: 0.16.0 and 0.17.0"


@pytest.mark.parametrize(
    ("more", "changes", "key", "problem"),
    [
        (
            "",
            [("enable_chunked_context: false", "enable_chunked_context: true")],
            "runtime.enable_chunked_context",
            "expected paged_context_fmha: true with it",
        ),
        (
            "",
            [(PLUGINS, PAGED), ("{context_fmha: true", "{context_fmha: false")],
            "plugins.paged_context_fmha",
            "is true while context_fmha is off; expected context_fmha: true",
        ),
        (
            "",
            [(PLUGINS, PAGED.replace("paged_kv_cache: true", "paged_kv_cache: false"))],
            "plugins.paged_context_fmha",
            "is true while paged_kv_cache is off",
        ),
        (
            "",
            [(PLUGINS, PAGED), ("gpt_attention: auto", "gpt_attention: disable")],
            "plugins.paged_context_fmha",
            "is true while gpt_attention is off",
        ),
        (line("kv_cache", "int8") + RANGES, [(PLUGINS, PAGED)], "kv_cache", "which cannot read it"),
        (
            line("kv_cache", "fp8") + RANGES,
            [(PLUGINS, PAGED)],
            "kv_cache",
            "precision is float16; expected precision: fp8 with it",
        ),
        (line("kv_cache", "int8"), [], "activation_ranges", "is missing; expected a file of activation ranges"),
        ("", [("precision: float16", "precision: fp8")], "activation_ranges", "which precision: fp8 needs"),
        ("", [("precision: float16", "precision: fp8")], "activation_ranges", "docs/quantisation.md has a script"),
        ("", [("precision: float16", "precision: int8_smoothquant")], "activation_ranges", "is missing"),
        (RANGES, [], "activation_ranges", "expected it left out: nothing reads it"),
        (line("group_size", "64"), [], "group_size", "expected it left out: only int4_awq has it"),
        (line("group_size", "32"), [], "group_size", "is 32; expected 64 or 128"),
        (line("smoothquant", "{alpha: 0.4}"), [], "smoothquant", "only int8_smoothquant has it"),
        ("", [("gemm: auto", "gemm: fp8")], "plugins.gemm", "it multiplies fp8 weights only"),
        ("", [("gemm: auto", "gemm: bfloat16")], "plugins.gemm", "expected auto, or the same"),
        (
            "",
            [("gpt_attention: auto", "gpt_attention: float32")],
            "plugins.gpt_attention",
            "expected auto, or the same",
        ),
        (line("gpus", "[0, 1]"), [], "gpus", "has 2 numbers; expected 1, one for each rank"),
        (line("gpus", "[0, 0]"), [("tensor_parallel: 1", "tensor_parallel: 2")], "gpus", "expected each number once"),
        (
            line("gpus", "[0, 1]"),
            [("tensor_parallel: 1", "tensor_parallel: 2"), ("pipeline_parallel: 1", "pipeline_parallel: 2")],
            "gpus",
            "expected 4, one for each rank (tensor_parallel 2 x pipeline_parallel 2)",
        ),
        (line("embedding_sharding", "vocab"), [], "embedding_sharding", "while tensor_parallel is 1"),
        (line("gpu_architecture", "hopper"), [], "gpu_architecture", "expected an architecture such as sm_90"),
        (
            line("gpu_architecture", "sm_80") + RANGES,
            [("precision: float16", "precision: fp8")],
            "precision",
            "is 'fp8' while gpu_architecture is sm_80; expected sm_89 up",
        ),
        (
            line("gpu_architecture", "sm_75"),
            [("precision: float16", "precision: bfloat16")],
            "precision",
            "expected sm_80 up",
        ),
        (
            line("image", "a/b:1"),
            [("executor: docker", "executor: local")],
            "image",
            "expected executor: docker with it",
        ),
        (line("image", "'a b'"), [], "image", "expected the name of a container image"),
        (line("workers", "0"), [], "workers", "is 0; expected at least 1"),
        (line("kv_cache", "int4"), [], "kv_cache", "expected auto, int8 or fp8"),
        (line("smoothquant", "{alpha: 2}"), [], "smoothquant.alpha", "is 2; expected at most 1"),
        (line("options", "{Nope!: 1}"), [], "options.Nope!", "is no option of trtllm-build in any known release"),
    ],
)
def test_a_combination_that_cannot_work_names_its_key_and_what_was_expected(
    tmp_path: Path, more: str, changes: list[tuple[str, str]], key: str, problem: str
) -> None:
    error = refused(tmp_path, block(more, *changes))
    assert error.key == f"{ENGINE}.{key}"
    assert problem in error.problem
    assert error.also == ()
