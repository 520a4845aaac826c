"""Options of trtllm-build: the data against parsers that were run, ranges, values, and what is marked as unseen."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.support.trtllm_parser import RUN, run_options
from tritonforge.releases.build_options import (
    SWITCH,
    BuildOption,
    all_option_names,
    build_options,
    what_replaced,
    where_option_exists,
    where_value_exists,
)
from tritonforge.releases.files import read_data
from tritonforge.releases.table import all_releases, find_release, version_key


def option(release: str, name: str) -> BuildOption:
    return build_options(find_release(release))[name]


@pytest.mark.parametrize("line", RUN)
def test_the_data_equals_the_parser_that_was_run(line: str) -> None:
    facts = run_options(RUN[line])
    known = build_options(find_release(f"{line}.0"))
    assert set(known) == set(facts)
    for name, row in facts.items():
        ours = known[name]
        assert ours.evidence == ("preview" if line == "0.16" else "run")
        assert (ours.type == "flag") == bool(row.get("flag"))
        assert (ours.type == "list") == (row.get("nargs") == "+")
        assert (ours.type == "int") == (row.get("type") == "int")
        assert ours.aliases == tuple(row.get("aliases", ()))
        if ours.type != "flag":
            default = row["default"]
            assert str(ours.default) == str(default), name
        if name != "kv_cache_type":  # an enumeration, whose members the parser does not list
            assert (SWITCH if ours.type == "switch" else ours.choices) == tuple(row.get("choices", ()))


@pytest.mark.parametrize(
    ("line", "evidence"),
    [("0.15.0", "inferred"), ("0.17.0", "inferred"), ("1.0.0", "inferred"), ("1.1.0", "read"), ("1.2.1", "read")],
)
def test_what_was_not_run_is_marked(line: str, evidence: str) -> None:
    assert {known.evidence for known in build_options(find_release(line)).values()} == {evidence}


def test_a_line_between_two_that_were_run_has_what_both_have() -> None:
    before, after = (set(run_options(RUN[line])) for line in ("0.14", "0.16"))
    assert set(build_options(find_release("0.15.0"))) == before & after


def test_a_default_that_changed_at_an_unknown_release_says_so() -> None:
    assert option("0.16.0", "tokens_per_block").default == 64
    assert option("0.19.0", "tokens_per_block").default is None
    assert option("0.19.0", "tokens_per_block").default_either == (64, 32)
    assert option("1.2.1", "tokens_per_block").default == 32


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("max_seq_len", "0.11 on"),
        ("max_output_len", "0.9 to 0.11"),
        ("context_fmha", "all"),
        ("weight_only_precision", "0.9 to 0.10"),
        ("kv_cache_type", "0.13 on"),
        ("pp_reduce_scatter", "0.16 on"),
        ("no_such_option", ""),
    ],
)
def test_where_an_option_exists_is_said_in_words(name: str, lines: str) -> None:
    assert where_option_exists(name) == lines


def test_where_a_value_is_taken_is_said_in_words() -> None:
    assert where_value_exists("gemm_plugin", "fp8").startswith("0.11, 0.12")
    assert where_value_exists("speculative_decoding_mode", "eagle").startswith("0.16, 0.17")
    assert where_value_exists("gemm_plugin", "int3") == ""


def test_renamed_options_and_other_names_lead_to_the_name_of_today() -> None:
    assert what_replaced("max_output_len") == "max_seq_len"
    assert what_replaced("paged_kv_cache") == "kv_cache_type"
    assert what_replaced("max_multimodal_len") == "max_prompt_embedding_table_size"
    assert what_replaced("context_fmha") is None
    assert option("0.12.0", "paged_kv_cache").now is None
    assert option("0.13.0", "paged_kv_cache").now == "kv_cache_type"


@pytest.mark.parametrize(
    ("release", "name", "value", "expected"),
    [
        ("0.16.0", "tokens_per_block", 64, None),
        ("0.16.0", "tokens_per_block", "64", "a whole number"),
        ("0.16.0", "tokens_per_block", True, "a whole number"),
        ("0.16.0", "tokens_per_block", -1, "a whole number from 0"),
        ("0.16.0", "profiling_verbosity", "detailed", None),
        ("0.16.0", "profiling_verbosity", "loud", "one of layer_names_only, detailed, none"),
        ("0.16.0", "paged_state", True, None),
        ("0.16.0", "paged_state", "disable", None),
        ("0.16.0", "paged_state", "off", "one of enable, disable"),
        ("0.16.0", "strip_plan", True, None),
        ("0.16.0", "strip_plan", "enable", "the option takes no value"),
        ("0.16.0", "lora_dir", ["a", "b"], None),
        ("0.16.0", "lora_dir", [], "text, or a list of texts"),
        ("0.16.0", "lora_dir", [3], "text, or a list of texts"),
        ("0.16.0", "input_timing_cache", "", "text"),
        ("0.16.0", "input_timing_cache", {}, "text"),
        ("0.16.0", "input_timing_cache", "--output_dir=/elsewhere", "a '-' at its start"),
        ("0.16.0", "input_timing_cache", "a\0b", "without control characters"),
        ("0.16.0", "input_timing_cache", "\ud800", "without control characters"),
        ("0.16.0", "lora_dir", ["a", "--output_dir", "b"], "a '-' at its start"),
        ("0.9.0", "lora_target_modules", ["attn_q", "attn_v"], None),
        ("0.9.0", "lora_target_modules", ["attn_x"], "one of attn_qkv"),
        ("0.13.0", "builder_opt", 6, "one of 0, 1, 2, 3, 4, 5"),
        ("1.2.1", "streamingllm", "enable", "one of disable"),
    ],
)
def test_a_value_is_judged_by_what_the_release_takes(
    release: str, name: str, value: object, expected: str | None
) -> None:
    problem = option(release, name).problem_with(value)
    assert problem is None if expected is None else problem is not None and expected in problem


@pytest.mark.parametrize(
    ("release", "name", "value", "words"),
    [
        ("0.16.0", "tokens_per_block", 64, ("--tokens_per_block", "64")),
        ("0.16.0", "paged_state", False, ("--paged_state", "disable")),
        ("0.16.0", "paged_state", "enable", ("--paged_state", "enable")),
        ("0.16.0", "strip_plan", True, ("--strip_plan",)),
        ("0.16.0", "strip_plan", False, ()),
        ("0.16.0", "lora_dir", ["a", "b"], ("--lora_dir", "a", "b")),
        ("0.12.0", "use_fused_mlp", True, ("--use_fused_mlp",)),
        ("0.13.0", "use_fused_mlp", True, ("--use_fused_mlp", "enable")),
    ],
)
def test_a_value_is_written_as_the_release_reads_it(
    release: str, name: str, value: bool | int | str | list[str], words: tuple[str, ...]
) -> None:
    assert option(release, name).words(value) == words


def test_rows_of_an_option_follow_each_other() -> None:
    """No line has two rows of an option: the second would be read as if the first were not there."""
    for name, rows in read_data("build_options")["options"].items():
        for earlier, later in pairwise(rows):
            assert version_key(earlier["until"]) < version_key(later["since"]), name
        assert where_option_exists(name)
    assert set(all_option_names()) == {name for release in all_releases() for name in build_options(release)}


def test_what_is_said_about_options_is_about_options_that_exist() -> None:
    data = read_data("build_options")
    for table in ("renamed", "keys", "reserved"):
        assert set(data[table]) <= set(data["options"])
    assert set(data["aliases"].values()) <= set(data["options"])
