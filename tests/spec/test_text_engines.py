"""The kinds that serve a checkpoint as it is: `vllm` and `llmapi`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.examples import load_text, refused
from tritonforge.spec.dump import dump_spec
from tritonforge.spec.llmapi import LlmApiEngineSpec
from tritonforge.spec.vllm import VllmEngineSpec

PLACE = "models[0].versions.1.engine"


def text_of(engine: str) -> str:
    return (
        "schema: 1\nrepository: ./r\nmodels:\n  - name: llama\n    checkpoint: ./llama\n"
        f"    versions:\n      1:\n        engine: {engine}\n"
    )


def engine_of(folder: Path, engine: str) -> object:
    return load_text(folder, text_of(engine)).spec.models[0].versions[1].engine


def test_vllm_takes_its_common_arguments_by_name_and_any_other_as_it_is(tmp_path: Path) -> None:
    engine = engine_of(
        tmp_path,
        "{kind: vllm, dtype: bfloat16, tensor_parallel_size: 2, gpus: [2, 3], quantization: awq, "
        "engine_args: {block_size: 16, compilation_config: {level: 3}}}",
    )
    assert isinstance(engine, VllmEngineSpec)
    assert (engine.world_size, engine.precision, engine.gpus) == (2, "awq", (2, 3))
    assert engine.engine_args == {"block_size": 16, "compilation_config": {"level": 3}}


def test_llmapi_takes_a_release_of_the_table(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, '{kind: llmapi, release: "1.0.0", tensor_parallel: 4, kv_cache: {dtype: fp8}}')
    assert isinstance(engine, LlmApiEngineSpec)
    assert (engine.release, engine.world_size, engine.precision) == ("1.0.0", 4, "auto")


@pytest.mark.parametrize(
    ("engine", "key", "problem"),
    [
        ("{kind: vllm, engine_args: {trust_remote_code: true}}", "engine_args.trust_remote_code", "code is never run"),
        ("{kind: vllm, engine_args: {trust_remote_code: false}}", "engine_args.trust_remote_code", "left out"),
        (
            "{kind: vllm, engine_args: {additional_config: {deep: [{worker_cls: x}]}}}",
            "engine_args.additional_config.deep.worker_cls",
            "cannot be passed on",
        ),
        (
            "{kind: vllm, engine_args: {hf_overrides: {trust-remote-code: true}}}",
            "engine_args.hf_overrides.trust-remote-code",
            "code is never run",
        ),
        (
            """{kind: vllm, engine_args: {hf_overrides: '{"--Trust_Remote_Code": 1}'}}""",
            "engine_args.hf_overrides.--Trust_Remote_Code",
            "code is never run",
        ),
        (
            "{kind: vllm, engine_args: {compilation_config: {inductor_passes: {post_grad: a.b}}}}",
            "engine_args.compilation_config.inductor_passes",
            "code is never run",
        ),
        (
            "{kind: vllm, engine_args: {compilation_config: {backend: my.compiler}}}",
            "engine_args.compilation_config.backend",
            "is 'my.compiler'; expected one of eager, inductor, openxla",
        ),
        (
            "{kind: vllm, engine_args: {speculative_config: {model: org/draft, num_speculative_tokens: 3}}}",
            "engine_args.speculative_config.model",
            "is 'org/draft': it names a model that the server would download",
        ),
        (
            '{kind: llmapi, release: "1.0.0", llm_args: {speculative_config: {speculative_model: org/draft}}}',
            "llm_args.speculative_config.speculative_model",
            "expected its folder",
        ),
        ("{kind: vllm, engine_args: {model: org/name}}", "engine_args.model", "nothing downloaded"),
        ("{kind: vllm, engine_args: {hf_token: abc}}", "engine_args.hf_token", "read by everybody"),
        ("{kind: vllm, engine_args: {dtype: half}}", "engine_args.dtype", "expected engine.dtype"),
        ("{kind: vllm, engine_args: {max_model_len: 10}}", "engine_args.max_model_len", "expected limits.max_seq_len"),
        ("{kind: vllm, engine_args: {load_format: pt}}", "engine_args.load_format", "unpack pickles"),
        (
            "{kind: vllm, engine_args: {distributed_executor_backend: my.Executor}}",
            "engine_args.distributed_executor_backend",
            "is 'my.Executor'; expected one of mp, ray, uni",
        ),
        (
            '{kind: vllm, engine_args: {a: {b: "\\ud800"}}}',
            "engine_args.a",
            "expected text of whole Unicode characters",
        ),
        (
            '{kind: vllm, engine_args: {a: {"\\ud800": 1}}}',
            "engine_args.a",
            "expected text of whole Unicode characters",
        ),
        ("{kind: vllm, engine_args: {seed_: .inf}}", "engine_args.seed_", "expected a value that JSON can hold"),
        ("{kind: vllm, engine_args: {'--dtype': a}}", "engine_args.--dtype", "expected the name of an option"),
        ("{kind: vllm, gpus: [0], tensor_parallel_size: 2}", "gpus", "is [0], 1 GPUs; expected 2"),
        ("{kind: vllm, gpus: [0, 0], tensor_parallel_size: 2}", "gpus", "expected each number once"),
        ("{kind: vllm, quantization: 'a b'}", "quantization", "is 'a b'"),
        ('{kind: llmapi, release: "0.16.0"}', "release", "expected 0.19.0 or later"),
        ('{kind: llmapi, release: "0.22.0"}', "release", "expected one like 0.21.0 or 1.0.0"),
        ('{kind: llmapi, release: "1.0.0", llm_args: {backend: tensorrt}}', "llm_args.backend", "cannot be passed on"),
        (
            '{kind: llmapi, release: "1.0.0", llm_args: {kv_cache_config: {}}}',
            "llm_args.kv_cache_config",
            "expected engine.kv_cache",
        ),
        (
            '{kind: llmapi, release: "1.0.0", llm_args: {speculative_config: {trust_remote_code: true}}}',
            "llm_args.speculative_config.trust_remote_code",
            "code is never run",
        ),
    ],
)
def test_what_cannot_be_passed_on_is_refused_at_its_key(tmp_path: Path, engine: str, key: str, problem: str) -> None:
    error = refused(tmp_path, text_of(engine))
    assert (error.key, error.line) == (f"{PLACE}.{key}", 8)
    assert problem in error.problem


@pytest.mark.parametrize(
    "engine",
    [
        "{kind: vllm, max_num_seqs: 8, engine_args: {block_size: 16, a: [1, {b: null}]}}",
        "{kind: vllm, engine_args: {speculative_config: {model: /models/draft}, speculative_model: '[ngram]'}}",
        "{kind: vllm, engine_args: {compilation_config: {backend: eager}, a: '{not json', b: '[1]'}}",
        '{kind: llmapi, release: "1.2.1", llm_args: {cuda_graph_config: {enable_padding: true}}}',
        '{kind: llmapi, release: "1.2.1", llm_args: {moe_config: {backend: CUTLASS}}}',  # not the LLM's backend
    ],
)
def test_a_specification_survives_being_written_and_read(tmp_path: Path, engine: str) -> None:
    spec = load_text(tmp_path, text_of(engine)).spec
    assert load_text(tmp_path, dump_spec(spec)).spec == spec


@pytest.mark.parametrize(
    "engine", ["{kind: vllm}", '{kind: llmapi, release: "1.0.0"}'], ids=lambda engine: str(engine)[7:13]
)
def test_triton_does_not_batch_for_a_text_engine(tmp_path: Path, engine: str) -> None:
    batching = "    serving: {dynamic_batching: {max_queue_delay_microseconds: 5}}\n"
    error = refused(tmp_path, text_of(engine) + batching)
    assert error.key == "models[0].serving.dynamic_batching"
    assert "dynamic_batching: null" in error.problem
    load_text(tmp_path, text_of(engine) + "        serving: {dynamic_batching: null}\n" + batching)


def test_llmapi_runs_once(tmp_path: Path) -> None:
    serving = "    serving: {instance_group: [{kind: KIND_CPU, count: 2}]}\n"
    error = refused(tmp_path, text_of('{kind: llmapi, release: "1.0.0"}') + serving)
    assert error.key == "models[0].serving.instance_group"
    assert "2 copies" in error.problem


def test_a_vllm_of_several_gpus_is_not_put_on_one(tmp_path: Path) -> None:
    serving = "    serving: {instance_group: [{kind: KIND_GPU, count: 1}]}\n"
    error = refused(tmp_path, text_of("{kind: vllm, tensor_parallel_size: 2}") + serving)
    assert error.key == "models[0].serving.instance_group"
    assert "KIND_MODEL" in error.problem
    load_text(tmp_path, text_of("{kind: vllm}") + serving)
