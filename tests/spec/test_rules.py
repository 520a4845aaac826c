"""What the keys may hold: names, versions, limits, engines, serving, tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.examples import TENSORRT_LLM, TWO_VERSIONS, changed, load_text, refused
from tritonforge.spec.limits import LimitsSpec

NAME = "- name: smollm2 "
CHECKPOINT = "./checkpoints/SmolLM2-135M-Instruct"
V2 = "2: {engine: {kind: openvino, precision: int8}}"
LIMITS = "{max_batch_size: 32, max_input_len: 2048, max_seq_len: 4096}"
GROUPS = "[{kind: KIND_CPU, count: 1}]"
BATCHING = "{max_queue_delay_microseconds: 1000}"
TEST = '{prompt: "The capital of France is", max_tokens: 8, contains: Paris}'
PLUGINS = "context_fmha: true, rotary_embedding: true, gpt_attention: auto"


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        ".hidden",
        "a/b",
        "a\\\\b",
        "/a",
        "-a",
        "_a",
        "a b",
        "modèle",
        "模型",
        "a\\nb",
        "a\\0b",
        "a:b",
        "",
        "a\\u202eb",
    ],
)
def test_hostile_names_are_refused(tmp_path: Path, name: str) -> None:
    error = refused(tmp_path, changed(NAME, f'- name: "{name}" '))
    assert (error.line, error.key) == (4, "models[0].name")
    assert "expected letters, digits" in error.problem
    assert "\n" not in str(error)


def test_a_very_long_name_is_refused_and_shortened_in_the_message(tmp_path: Path) -> None:
    error = refused(tmp_path, changed(NAME, f"- name: {'a' * 5000} "))
    assert "has 5000 characters; expected at most 128" in error.problem
    assert len(str(error)) < 300


@pytest.mark.parametrize("name", ["a", "Llama-3.2-1B", "0", "a" * 128, "chatglm3_6b"])
def test_ordinary_names_are_taken(tmp_path: Path, name: str) -> None:
    assert load_text(tmp_path, changed(NAME, f'- name: "{name}" ')).spec.models[0].name == name


@pytest.mark.parametrize("reference", ["hf:org/name@main", "s3://bucket/key", "gs://b/k", "https://example.org/a.gguf"])
def test_remote_checkpoints_say_what_this_release_reads(tmp_path: Path, reference: str) -> None:
    error = refused(tmp_path, changed(CHECKPOINT, reference))
    assert error.key == "models[0].checkpoint"
    assert f"is '{reference}'; this release reads local folders and GGUF files" in error.problem


@pytest.mark.parametrize("reference", ["./a", "../a", "/a/b.gguf", "~/models/a", "hf/a", "models:v1", "C"])
def test_local_checkpoints_are_taken(tmp_path: Path, reference: str) -> None:
    assert load_text(tmp_path, changed(CHECKPOINT, reference)).spec.models[0].checkpoint == reference


@pytest.mark.parametrize("key", ["one", '"2"', "2.0", "true", "0", "-1", "2147483648", "99999999999999999999"])
def test_version_keys_are_whole_numbers_from_one(tmp_path: Path, key: str) -> None:
    error = refused(tmp_path, changed("      2: {", f"      {key}: {{"))
    assert error.line == 8
    assert "expected" in error.problem


@pytest.mark.parametrize(
    ("old", "new", "key", "problem"),
    [
        ("schema: 1", "schema: 2", "schema", "is 2; expected 1"),
        ("schema: 1", "schema: true", "schema", "is true; expected a whole number"),
        ("schema: 1", "schema: 1.0", "schema", "is 1.0; expected a whole number"),
        ("schema: 1", 'schema: "1"', "schema", "is '1'; expected a whole number, without quotes"),
        ("repository: ./model_repository", "repository:", "repository", "is empty; expected text"),
        ("repository: ./model_repository", 'repository: " "', "repository", "expected a path, found empty text"),
        (V2, "2:", "models[0].versions.2", "is empty; expected keys with values"),
        (
            V2,
            "2: {engine: {}}",
            "models[0].versions.2.engine.kind",
            "is missing; expected llmapi, openvino, tensorrt_llm or vllm",
        ),
        (V2, "2: {engine: openvino}", "models[0].versions.2.engine", "is 'openvino'; expected keys with values"),
        (
            V2,
            V2.replace("int8", "int9"),
            "models[0].versions.2.engine.precision",
            "is 'int9'; expected float32, float16",
        ),
        ("{1: 100}", "{3: 1}", "models[0].traffic.3", "there is no version 3; expected one of 1, 2"),
        ("{1: 100}", "{1: 0}", "models[0].traffic", "has no weight above 0"),
        ("{1: 100}", "{}", "models[0].traffic", "has no weight above 0"),
        ("{1: 100}", "{1: .nan}", "models[0].traffic.1", "is nan; expected a finite number"),
        ("{1: 100}", "{1: .inf}", "models[0].traffic.1", "expected a finite number"),
        ("{1: 100}", "{1: true}", "models[0].traffic.1", "is true; expected a number"),
        ("{1: 100}", "{1: 1e999}", "models[0].traffic.1", "expected a finite number"),
        (
            "max_batch_size: 32",
            "max_batch_size: true",
            "models[0].limits.max_batch_size",
            "is true; expected a whole number",
        ),
        ("max_batch_size: 32", "max_batch_size: 0", "models[0].limits.max_batch_size", "is 0; expected at least 1"),
        ("max_batch_size: 32", "max_batch_size: 1e3", "models[0].limits.max_batch_size", "expected a whole number"),
        (
            "max_batch_size: 32",
            f"max_batch_size: {10**30}",
            "models[0].limits.max_batch_size",
            "expected at most 65536",
        ),
        (
            "max_batch_size: 32",
            f"max_batch_size: {10**99}",
            "models[0].limits.max_batch_size",
            "a number of 100 digits",
        ),
        (
            "max_input_len: 2048",
            "max_input_len: 4096",
            "models[0].limits.max_input_len",
            "expected less than max_seq_len (4096)",
        ),
        ("max_seq_len: 4096", "max_seq_len: 1", "models[0].limits.max_seq_len", "is 1; expected at least 2"),
        (GROUPS, "[]", "models[0].serving.instance_group", "is an empty list; expected at least 1 entry"),
        (GROUPS, "{kind: KIND_CPU}", "models[0].serving.instance_group", "is a mapping; expected a list"),
        (GROUPS, "[{kind: KIND_GPUS}]", "models[0].serving.instance_group[0].kind", "expected KIND_CPU, KIND_GPU"),
        (GROUPS, "[{count: 0}]", "models[0].serving.instance_group[0].count", "is 0; expected at least 1"),
        (GROUPS, "[{gpus: [0]}]", "models[0].serving.instance_group[0].gpus", "is [0] while kind is KIND_CPU"),
        (GROUPS, "[{kind: KIND_GPU, gpus: [1, 1]}]", "models[0].serving.instance_group[0].gpus", "each number once"),
        (GROUPS, '[{kind: KIND_GPU, gpus: ["0"]}]', "models[0].serving.instance_group[0].gpus[0]", "without quotes"),
        (
            BATCHING,
            "{preferred_batch_size: [4, 64]}",
            "models[0].serving.dynamic_batching.preferred_batch_size",
            "holds 64; expected at most max_batch_size (32 in version 2)",
        ),
        (
            BATCHING,
            "{preserve_ordering: true, default_queue_policy: {timeout_action: DELAY}}",
            "models[0].serving.dynamic_batching.preserve_ordering",
            "which changes the order",
        ),
        (TEST, '{prompt: "\\ud800"}', "models[0].tests[0].prompt", "expected text of whole Unicode characters"),
        (TEST, "{prompt: a, 5: b}", "models[0].tests[0].5", "is not a known key; expected one of prompt, messages"),
        (TEST, "{}", "models[0].tests[0]", "has neither of prompt and messages"),
        (
            TEST,
            "{prompt: a, messages: [{role: user, content: b}]}",
            "models[0].tests[0]",
            "has both of prompt and messages",
        ),
        (TEST, "{prompt: a, contains: b, equals: c}", "models[0].tests[0].equals", "stands beside contains"),
        (TEST, "{prompt: a, contains: 42}", "models[0].tests[0].contains", "is 42; expected text: put it in quotes"),
        (
            TEST,
            "{messages: [{role: robot, content: b}]}",
            "models[0].tests[0].messages[0].role",
            "expected system, user or",
        ),
        (TEST, "{prompt: a, temperature: -1}", "models[0].tests[0].temperature", "is -1; expected at least 0"),
    ],
)
def test_a_wrong_value_names_its_key_and_what_was_expected(
    tmp_path: Path, old: str, new: str, key: str, problem: str
) -> None:
    error = refused(tmp_path, changed(old, new))
    assert error.key == key
    assert problem in error.problem
    assert error.also == ()


@pytest.mark.parametrize(
    ("old", "new", "key", "problem"),
    [
        ('"0.16.0"', "0.16", "release", "is 0.16; expected text: put it in quotes"),
        ('"0.16.0"', "newest", "release", 'expected a TensorRT-LLM release such as "0.16.0"'),
        ("precision: float16", "precision: int8", "precision", "expected float16, bfloat16"),
        ("tensor_parallel: 1", "tensor_parallel: 0", "tensor_parallel", "is 0; expected at least 1"),
        ("gemm: auto", "gemm: true", "plugins.gemm", "is true; expected auto, float16"),
        ("executor: docker", "executor: podman", "executor", "expected docker or local"),
        (
            "mem_fraction: 0.9",
            "mem_fraction: 90",
            "runtime.kv_cache_free_gpu_mem_fraction",
            "is 90; expected at most 1",
        ),
        (
            "mem_fraction: 0.9",
            "mem_fraction: 0",
            "runtime.kv_cache_free_gpu_mem_fraction",
            "is 0; expected more than 0",
        ),
        ("guaranteed_no_evict", "no_evict", "runtime.batch_scheduler_policy", "expected guaranteed_no_evict or max_"),
        ("context_fmha: true", "context_fmha: yes", "plugins.context_fmha", "is 'yes'; expected true or false"),
    ],
)
def test_a_wrong_value_in_the_tensorrt_llm_block_is_refused(
    tmp_path: Path, old: str, new: str, key: str, problem: str
) -> None:
    error = refused(tmp_path, changed(old, new, TENSORRT_LLM))
    assert error.key == f"models[0].versions.1.engine.{key}"
    assert problem in error.problem


def test_a_tensorrt_llm_engine_needs_its_release(tmp_path: Path) -> None:
    error = refused(tmp_path, changed('          release: "0.16.0"\n', "", TENSORRT_LLM))
    assert (error.line, error.key) == (9, "models[0].versions.1.engine.release")


def test_rotary_embedding_off_needs_gpt_attention_off_in_tensorrt_llm(tmp_path: Path) -> None:
    off = PLUGINS.replace("rotary_embedding: true", "rotary_embedding: false")
    error = refused(tmp_path, changed(PLUGINS, off, TENSORRT_LLM))
    assert error.key == "models[0].versions.1.engine.plugins.rotary_embedding"
    assert "expected gpt_attention: disable with it" in error.problem
    assert "it runs inside the gpt_attention plugin" in error.problem
    allowed = off.replace("gpt_attention: auto", "gpt_attention: disable")
    assert load_text(tmp_path, changed(PLUGINS, allowed, TENSORRT_LLM))


def test_both_plugins_are_free_switches_of_the_embedded_engine(tmp_path: Path) -> None:
    plugins = "plugins: {context_fmha: false, rotary_embedding: false}"
    engine = (
        load_text(tmp_path, changed(V2, f"2: {{engine: {{kind: openvino, {plugins}}}}}"))
        .spec.models[0]
        .versions[2]
        .engine
    )
    assert (engine.plugins.context_fmha, engine.plugins.rotary_embedding) == (False, False)


def second_model(name: str) -> str:
    return f"{TWO_VERSIONS}  - {{name: {name}, checkpoint: ./b, versions: {{1: {{engine: {{kind: openvino}}}}}}}}\n"


@pytest.mark.parametrize("name", ["smollm2", "smollm2_engine_v1", "smollm2_engine_v2"])
def test_models_that_need_the_same_folder_are_refused(tmp_path: Path, name: str) -> None:
    error = refused(tmp_path, second_model(name))
    assert (error.line, error.key) == (16, "models[1].name")
    assert f"needs the folder '{name}" in error.problem


def test_two_models_share_a_repository(tmp_path: Path) -> None:
    assert len(load_text(tmp_path, second_model("smollm2_engine_v3")).spec.models) == 2


@pytest.mark.parametrize("repository", [".", "./checkpoints", "checkpoints/../checkpoints"])
def test_a_checkpoint_inside_the_repository_is_refused(tmp_path: Path, repository: str) -> None:
    error = refused(tmp_path, changed("./model_repository", repository))
    assert error.key == "models[0].checkpoint"
    assert "Triton takes every folder there for a model" in error.problem


def test_a_mount_is_absolute(tmp_path: Path) -> None:
    error = refused(tmp_path, changed("/models", "models", TENSORRT_LLM))
    assert error.problem == "is 'models'; expected an absolute path, as the server sees it"


def test_limits_left_out_follow_from_those_that_are_given() -> None:
    assert LimitsSpec().max_input_len == 2048
    assert LimitsSpec(max_seq_len=1000).max_input_len == 500


def test_limits_left_out_fit_a_model_of_few_positions() -> None:
    fitted = LimitsSpec(max_batch_size=4).fitted_to(512)
    assert (fitted.max_batch_size, fitted.max_input_len, fitted.max_seq_len) == (4, 256, 512)


def test_limits_that_were_asked_for_are_not_made_smaller() -> None:
    asked = LimitsSpec(max_seq_len=2048)
    assert asked.fitted_to(512) == asked
