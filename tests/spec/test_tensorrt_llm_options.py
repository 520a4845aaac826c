"""Options and parameters that go to TensorRT-LLM by its own names, refused at their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.examples import TENSORRT_LLM, changed, load_text, refused
from tests.spec.tensorrt_llm_blocks import ENGINE, RANGES, block, line


@pytest.mark.parametrize(
    ("release", "options", "name", "problem"),
    [
        (
            "0.16.0",
            "{weight_only_precision: int8}",
            "weight_only_precision",
            "expected a release that has it: 0.9 to 0.10",
        ),
        ("0.11.0", "{fp8_rowwise_gemm_plugin: auto}", "fp8_rowwise_gemm_plugin", "no option of trtllm-build 0.11.0"),
        ("0.11.0", "{fp8_rowwise_gemm_plugin: auto}", "fp8_rowwise_gemm_plugin", "a release that has it: 0.12 on"),
        ("0.16.0", "{max_output_len: 9}", "max_output_len", "has it: 0.9 to 0.11; max_seq_len is its name there"),
        (
            "0.16.0",
            "{max_multimodal_len: 9}",
            "max_multimodal_len",
            "max_prompt_embedding_table_size is its name there",
        ),
        ("0.16.0", "{token_per_block: 9}", "token_per_block", "did you mean 'tokens_per_block'?"),
        (
            "0.16.0",
            "{bogus_flag: true}",
            "bogus_flag",
            "`tritonforge releases 0.16.0 --options` lists them, among them use_fused_mlp, log_level, strip_plan",
        ),
        ("0.16.0", "{max_batch_size: 9}", "max_batch_size", "has a key of its own; expected limits.max_batch_size"),
        ("0.16.0", "{context_fmha: enable}", "context_fmha", "has a key of its own; expected plugins.context_fmha"),
        ("0.16.0", "{output_dir: /x}", "output_dir", "cannot be given: the build passes the folder of the engine"),
        ("0.16.0", "{dry_run: true}", "dry_run", "tritonforge build --dry-run"),
        ("0.16.0", "{tokens_per_block: many}", "tokens_per_block", "is 'many'; expected a whole number from 0"),
        ("0.16.0", "{tokens_per_block: 48}", "tokens_per_block", "is 48; expected a power of two"),
        ("0.16.0", "{paged_state: yes}", "paged_state", "is 'yes'; expected one of enable, disable"),
        ("0.16.0", "{pp_reduce_scatter: enable}", "pp_reduce_scatter", "for Mixtral models only"),
        ("0.16.0", "{use_fp8_context_fmha: enable}", "use_fp8_context_fmha", "expected precision: fp8 with it"),
        ("0.17.0", "{user_buffer: enable}", "user_buffer", "reduce_fusion: enable and precision: fp8 with it"),
        ("1.2.1", "{streamingllm: enable}", "streamingllm", "is 'enable'; expected one of disable"),
        (
            "0.16.0",
            "{max_draft_len: 3, gather_all_token_logits: true}",
            "max_draft_len",
            "expected gather_context_logits and gather_all_token_logits off",
        ),
    ],
)
def test_an_option_that_the_release_does_not_take_is_refused_at_its_line(
    tmp_path: Path, release: str, options: str, name: str, problem: str
) -> None:
    text = block(line("options", options), ('"0.16.0"', f'"{release}"'))
    error = refused(tmp_path, text)
    assert (error.line, error.key) == (18, f"{ENGINE}.options.{name}")
    assert problem in error.problem


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ("{opt_num_tokens: 512}", [("executor: docker", "executor: docker\n          multiple_profiles: true")]),
        ("{use_fused_mlp: enable}", [("precision: float16", "precision: int4_awq")]),
        ("{auto_parallel: 4}", [("tensor_parallel: 1", "tensor_parallel: 4")]),
        ("{tokens_per_block: 64}", [("paged_kv_cache: true", "paged_kv_cache: false")]),
        ("{streamingllm: enable}", [("paged_kv_cache: true", "paged_kv_cache: true, paged_context_fmha: true")]),
    ],
)
def test_an_option_that_contradicts_the_block_is_refused(
    tmp_path: Path, options: str, changes: list[tuple[str, str]]
) -> None:
    text = TENSORRT_LLM + line("options", options)
    assert load_text(tmp_path, text)
    for old, new in changes:
        text = changed(old, new, text)
    assert refused(tmp_path, text).key.startswith(f"{ENGINE}.options.")


def test_a_plugin_value_that_the_release_does_not_take_names_those_that_do(tmp_path: Path) -> None:
    gemm = [('"0.16.0"', '"0.10.0"'), ("gemm: auto", "gemm: fp8"), ("precision: float16", "precision: fp8")]
    error = refused(tmp_path, block(RANGES, *gemm))
    assert error.key == f"{ENGINE}.plugins.gemm"
    assert "TensorRT-LLM 0.10.0 does not take; expected a release of 0.11, 0.12" in error.problem


def test_a_parameter_with_a_key_of_its_own_is_refused_with_that_key(tmp_path: Path) -> None:
    runtime = "enable_chunked_context: false, parameters: {max_beam_width: 3}"
    error = refused(tmp_path, changed("enable_chunked_context: false", runtime, TENSORRT_LLM))
    assert error.problem == "is filled from limits.max_beam_width (take it out of parameters, and set that)"


def test_a_parameter_that_the_backend_lacks_is_refused_at_its_line(tmp_path: Path) -> None:
    runtime = "enable_chunked_context: false, parameters: {no_such_parameter: 1}"
    error = refused(tmp_path, changed("enable_chunked_context: false", runtime, TENSORRT_LLM))
    assert (error.line, error.key) == (16, f"{ENGINE}.runtime.parameters.no_such_parameter")
    assert "is no parameter of the backend of TensorRT-LLM 0.16.0" in error.problem
