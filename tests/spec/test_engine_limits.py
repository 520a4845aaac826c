"""Limits that one kind of engine cannot keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.examples import TENSORRT_LLM, changed, load_text, refused
from tests.spec.tensorrt_llm_blocks import EXECUTOR, PAGED, PLUGINS, block, line


@pytest.mark.parametrize(
    ("limits", "changes", "key", "problem"),
    [
        ("{max_num_tokens: 16}", [], "max_num_tokens", "expected at least 32, a token for every request"),
        ("{max_num_tokens: 64, max_beam_width: 4}", [], "max_num_tokens", "max_batch_size 32 x max_beam_width 4"),
        ("{max_num_tokens: 1024}", [], "max_num_tokens", "expected at least max_input_len (2048)"),
        (
            "{max_num_tokens: 4096}",
            [("remove_input_padding: true", "remove_input_padding: false")],
            "max_num_tokens",
            "expected it left out without remove_input_padding",
        ),
        (
            "{max_num_tokens: 4096}",
            [(EXECUTOR, EXECUTOR + line("options", "{opt_num_tokens: 5000}"))],
            "max_num_tokens",
            "expected at least options.opt_num_tokens (5000)",
        ),
        ("{max_beam_width: 0}", [], "max_beam_width", "is 0; expected at least 1"),
    ],
)
def test_limits_that_the_engine_cannot_keep_are_refused_where_they_are_written(
    tmp_path: Path, limits: str, changes: list[tuple[str, str]], key: str, problem: str
) -> None:
    text = TENSORRT_LLM + f"    limits: {limits}\n"
    for old, new in changes:
        text = changed(old, new, text)
    error = refused(tmp_path, text)
    assert error.key == f"models[0].limits.{key}"
    assert problem in error.problem


def test_a_limit_of_a_version_is_refused_at_the_version(tmp_path: Path) -> None:
    error = refused(tmp_path, TENSORRT_LLM + "        limits: {max_num_tokens: 1024}\n")
    assert (error.line, error.key) == (18, "models[0].versions.1.limits.max_num_tokens")


def test_prompts_in_pieces_need_no_step_that_holds_a_whole_one(tmp_path: Path) -> None:
    text = block(
        "",
        (PLUGINS, PAGED),
        ("enable_chunked_context: false", "enable_chunked_context: true"),
        limits="{max_num_tokens: 1024}",
    )
    assert load_text(tmp_path, text)


@pytest.mark.parametrize(
    ("engine", "limits", "key", "problem"),
    [
        ("kind: openvino", "max_beam_width: 2", "max_beam_width", "no beam search in openvino engines here"),
        ("kind: vllm", "max_beam_width: 2", "max_beam_width", "no beam search in vllm engines here"),
        ('kind: llmapi, release: "1.0.0"', "max_beam_width: 2", "max_beam_width", "no beam search in llmapi engines"),
        ("kind: openvino", "max_num_tokens: 4096", "max_num_tokens", "has runtime.max_num_batched_tokens"),
    ],
)
def test_limits_that_other_engines_have_not_are_refused(
    tmp_path: Path, engine: str, limits: str, key: str, problem: str
) -> None:
    text = (
        "schema: 1\nrepository: ./models\nmodels:\n"
        f"  - {{name: a, checkpoint: ./a, versions: {{1: {{engine: {{{engine}}}}}}}, limits: {{{limits}}}}}\n"
    )
    error = refused(tmp_path, text)
    assert error.key == f"models[0].limits.{key}"
    assert problem in error.problem
