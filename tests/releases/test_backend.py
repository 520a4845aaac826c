"""The backend's tensors and parameters by line, and which values of forge.yaml it takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.repository.backend_table import rows, tags
from tritonforge.releases.backend import (
    backend_line,
    check_parameters,
    where_parameter_exists,
    where_queue_policy_exists,
)
from tritonforge.releases.parameter import parameter_text
from tritonforge.releases.table import all_releases, find_release

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
NAMES = sorted({parameter.name for release in all_releases() for parameter in backend_line(release).parameters})


@pytest.mark.parametrize("tag", tags())
def test_a_line_has_the_tags_tensors_and_parameters_and_no_others(tag: str) -> None:
    line = backend_line(find_release(tag))

    assert line.evidence == "read"
    assert [tensor.name for tensor in line.inputs] == list(dict.fromkeys(tensor.name for tensor in line.inputs))
    assert {tensor.name for tensor in line.inputs} == rows(tag, "input").keys()
    assert {tensor.name for tensor in line.outputs} == rows(tag, "output").keys()
    beyond = {"recv_poll_period_ms"} if tag == "0.19.0" else set()  # read by the backend, in no template
    assert {parameter.name for parameter in line.parameters} - beyond == rows(tag, "parameter").keys()
    assert all(line.parameter(name) for name in beyond)


@pytest.mark.parametrize("release", all_releases(), ids=lambda release: release.name)
def test_every_parameter_has_a_value_a_source_or_a_default(release: Any) -> None:
    for parameter in backend_line(release).parameters:
        assert parameter.meaning
        assert (parameter.value, parameter.source, parameter.default) != (None, None, None), parameter.name


@pytest.mark.parametrize("release", ["0.20.0", "0.21.0", "1.0.0", "1.2.1"])
def test_what_was_read_in_no_tag_is_inferred_from_the_last_one_that_was(release: str) -> None:
    line, last = backend_line(find_release(release)), backend_line(find_release("0.19.0"))

    assert line.evidence == "inferred"
    assert [tensor for tensor in line.inputs if tensor.name not in {"min_tokens", "seed"}] == list(last.inputs)
    assert (line.outputs, line.parameters) == (last.outputs, last.parameters)
    assert (line.aliases, last.aliases) == ({"min_length": "min_tokens", "random_seed": "seed"}, {})


def test_the_default_of_kv_cache_reuse_flips_in_0_19() -> None:
    defaults = [backend_line(find_release(name)).parameter("enable_kv_cache_reuse") for name in ("0.18.2", "0.19.0")]

    assert [parameter.default for parameter in defaults if parameter is not None] == ["false", "true"]


def test_messages_say_where_something_exists() -> None:
    assert where_parameter_exists("worker_path") == "0.9"
    assert where_parameter_exists("sink_token_length") == "0.10 to 1.2"
    assert where_parameter_exists("nothing_of_the_kind") is None
    assert where_queue_policy_exists() == "0.12 to 1.2"


@pytest.mark.parametrize(
    ("release", "name", "value"),
    [
        ("0.9.0", "enable_trt_overlap", True),
        ("0.10.0", "kv_cache_host_memory_bytes", 2**33),
        ("0.16.0", "max_attention_window_size", [1024, 2048]),
        ("0.16.0", "max_attention_window_size", 4096),
        ("0.16.0", "decoding_mode", "eagle"),
        ("0.16.0", "gpu_weights_percent", 1),
        ("0.16.0", "participant_ids", "1,2;3,4"),
        ("0.16.0", "medusa_choices", "{0}, {0, 0}"),
        ("0.19.0", "enable_kv_cache_reuse", False),
        ("0.19.0", "recv_poll_period_ms", 10),
    ],
)
def test_good_values_are_taken(release: str, name: str, value: Any) -> None:
    assert check_parameters(find_release(release), {name: value}) == []


@pytest.mark.parametrize(
    ("release", "name", "value", "message", "hint"),
    [
        ("0.9.0", "sink_token_length", 4, "of TensorRT-LLM 0.9.0; it has one in 0.10 to 1.2", "0.10"),
        ("0.10.0", "worker_path", "/w", "it has one in 0.9", "use a release of 0.9"),
        ("0.16.0", "multi_blok_mode", True, "is no parameter", "did you mean 'multi_block_mode'?"),
        ("0.16.0", "multi_block_mode", "yes", "is 'yes'; expected true or false", None),
        ("0.16.0", "decoding_mode", "greedy", "is 'greedy'; expected one of top_k", None),
        ("0.9.0", "decoding_mode", "eagle", "expected one of top_k", None),
        ("0.16.0", "max_tokens_in_paged_kv_cache", 0, "is '0'; expected a whole number at least 1", None),
        ("0.16.0", "max_tokens_in_paged_kv_cache", 1.5, "is '1.5'; expected a whole number", None),
        ("0.16.0", "max_tokens_in_paged_kv_cache", "1_000", "is '1_000'; expected a whole number", None),
        ("0.16.0", "max_tokens_in_paged_kv_cache", "٣", "is '٣'; expected a whole number", None),
        ("0.16.0", "max_tokens_in_paged_kv_cache", " 5\n", "expected a whole number", None),
        ("0.16.0", "kv_cache_host_memory_bytes", 2**63, "expected a whole number", None),
        ("0.16.0", "max_attention_window_size", "4096,1_0", "expected whole numbers", None),
        ("0.16.0", "max_attention_window_size", [10**30], "expected whole numbers", None),
        ("0.16.0", "participant_ids", "1,٣", "expected numbers, separated by", None),
        ("0.16.0", "medusa_choices", "\ud800", "some text without control characters", None),
        ("0.16.0", "medusa_choices", "{0}\0", "some text without control characters", None),
        ("0.16.0", "gpu_weights_percent", "0_1", "expected a number", None),
        ("0.16.0", "gpu_weights_percent", 1.5, "expected a number at least 0 and at most 1", None),
        ("0.16.0", "gpu_weights_percent", float("nan"), "expected a number", None),
        ("0.16.0", "max_attention_window_size", [1024, 0], "expected whole numbers", None),
        ("0.16.0", "participant_ids", "a", "expected numbers", None),
        ("0.16.0", "medusa_choices", "${medusa_choices}", "expected a plain value", None),
        ("0.16.0", "medusa_choices", {"a": 1}, "expected a plain value", None),
        ("0.16.0", "medusa_choices", None, "expected a plain value", None),
        ("0.16.0", "medusa_choices", "", "expected some text", None),
        ("0.19.0", "guided_decoding_backend", "xgrammar", "is given without xgrammar_tokenizer_info_path", None),
        ("0.16.0", "gpt_model_path", "/x", "is filled from the version's own folder", "take it out"),
        ("0.16.0", "kv_cache_free_gpu_mem_fraction", 0.5, "runtime.kv_cache_free_gpu_mem_fraction", "take it out"),
        ("0.16.0", "gpu_device_ids", "0", "is filled from engine.gpus", "take it out"),
        ("0.16.0", "exclude_input_in_output", False, "is always 'true' here", "take it out"),
    ],
)  # fmt: skip
def test_a_bad_value_is_refused_with_what_was_expected(
    release: str, name: str, value: Any, message: str, hint: str | None
) -> None:
    (problem,) = check_parameters(find_release(release), {name: value})

    assert problem.name == name
    assert message in problem.message
    assert hint is None or hint in (problem.hint or "")


def test_parameters_that_need_each_other_are_taken_together() -> None:
    values = {"guided_decoding_backend": "xgrammar", "xgrammar_tokenizer_info_path": "/models/info.json"}

    assert check_parameters(find_release("0.19.0"), values) == []


@QUICK
@given(
    st.sampled_from(all_releases()),
    st.dictionaries(
        st.sampled_from(NAMES) | st.text(max_size=8),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
        | st.lists(st.integers() | st.text(max_size=3), max_size=3)
        | st.dictionaries(st.text(max_size=2), st.none(), max_size=1),
        max_size=5,
    ),
)  # fmt: skip
def test_no_value_brings_the_check_down_and_what_passes_is_one_line_of_text(
    release: Any, values: dict[str, Any]
) -> None:
    refused = {problem.name for problem in check_parameters(release, values)}

    for name in values.keys() - refused:
        assert backend_line(release).parameter(name) is not None
        assert parameter_text(values[name]).strip()
