"""Command lines of trtllm-build: goldens of many releases, judged by parsers made from the releases' own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.engine.tensorrt_llm.argv_cases import CASES, CHECKPOINT, GOLDENS, OUT, RELEASES, argv_of, read, written
from tests.support.trtllm_parser import RUN, RefusedArguments, parse
from tritonforge.engine.tensorrt_llm.argv import build_argv
from tritonforge.errors import SpecError
from tritonforge.releases import build_options
from tritonforge.releases.table import all_releases, find_release
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

EVERY_PAIR = [(release, case) for release in RELEASES for case in CASES]


def argv(release: str = "0.16.0", limits: dict[str, Any] | None = None, dtype: str = "float16", **engine: Any) -> str:
    """The command line as people read it."""
    spec = TensorRtLlmEngineSpec.model_validate({"kind": "tensorrt_llm", "release": release, **engine})
    asked = LimitsSpec.model_validate(limits or {})
    return " ".join(build_argv(spec, asked, dtype=dtype, checkpoint=CHECKPOINT, out=OUT))


@pytest.mark.parametrize("release", RELEASES)
def test_it_is_the_golden(release: str) -> None:
    assert (GOLDENS / f"{release}.sh").read_text(encoding="utf-8") == written(release)


def test_every_golden_is_compared() -> None:
    assert {path.name for path in GOLDENS.iterdir()} == {f"{release}.sh" for release in RELEASES}
    assert {".".join(release.split(".")[:2]) for release in RELEASES} >= set(RUN)


@pytest.mark.parametrize(("release", "case"), EVERY_PAIR)
def test_the_releases_parser_reads_the_golden_as_it_is_meant(release: str, case: str) -> None:
    program, *words = read(release)[case]
    read_back = vars(parse(find_release(release), words))
    engine, limits, dtype = CASES[case]
    asked = LimitsSpec.model_validate(limits)
    assert (program, read_back["checkpoint_dir"], read_back["output_dir"]) == ("trtllm-build", CHECKPOINT, OUT)
    assert (read_back["max_batch_size"], read_back["max_input_len"]) == (asked.max_batch_size, asked.max_input_len)
    assert read_back["max_beam_width"] == asked.max_beam_width
    longest = read_back.get("max_seq_len") or read_back["max_input_len"] + read_back["max_output_len"]
    assert longest == asked.max_seq_len
    plugins = engine.get("plugins", {})
    attention = read_back["gpt_attention_plugin"]
    assert attention in ({"disable"} if plugins.get("gpt_attention") == "disable" else {"auto", dtype})
    paged = read_back.get("kv_cache_type") or {"enable": "paged", "disable": "continuous"}[read_back["paged_kv_cache"]]
    assert paged == ("paged" if plugins.get("paged_kv_cache", True) else "continuous")
    assert read_back["context_fmha"] == ("enable" if plugins.get("context_fmha", True) else "disable")
    assert read_back["use_paged_context_fmha"] == ("enable" if plugins.get("paged_context_fmha") else "disable")
    assert read_back["workers"] == engine.get("workers", 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--context_fmha enable", "--context_fmha true"),
        ("--gemm_plugin auto", "--gemm_plugin float8"),
        ("--kv_cache_type paged", "--kv_cache_type enable"),
        ("--max_batch_size 32", "--max_batch_size many"),
        ("--max_seq_len 4096", "--max_output_len 2048"),
        ("--workers 1", "--workers"),
        ("--workers 1", "--workers 1 --gather_context_logits enable"),
    ],
)
def test_the_parser_refuses_a_wrong_form_of_a_value(old: str, new: str) -> None:
    text = " ".join(argv_of("0.16.0", "default"))
    assert old in text
    with pytest.raises(RefusedArguments):
        parse(find_release("0.16.0"), text.replace(old, new).split()[1:])


def test_auto_is_spelt_out_for_releases_that_do_not_know_the_word() -> None:
    assert "--gpt_attention_plugin bfloat16 --gemm_plugin bfloat16" in argv("0.10.0", dtype="bfloat16")
    assert "--gpt_attention_plugin auto --gemm_plugin auto" in argv("0.11.0", dtype="bfloat16")


def test_the_communication_plugin_follows_the_checkpoint_where_0_10_would_take_float16() -> None:
    assert "--nccl_plugin bfloat16" in argv("0.10.0", dtype="bfloat16", pipeline_parallel=2)
    assert "nccl" not in argv("0.10.0", dtype="bfloat16")
    assert "nccl" not in argv("0.9.0", tensor_parallel=2)


@pytest.mark.parametrize(
    ("limits", "written_value"),
    [
        ({}, "8192"),
        ({"max_input_len": 10000, "max_seq_len": 20000}, "10000"),
        ({"max_batch_size": 1, "max_seq_len": 512}, "512"),
        ({"max_batch_size": 9000}, "9000"),
        ({"max_num_tokens": 4096}, "4096"),
    ],
)
def test_a_step_takes_a_whole_prompt_and_a_token_of_every_request(limits: dict[str, int], written_value: str) -> None:
    assert f"--max_num_tokens {written_value} " in argv("0.16.0", limits)


def test_a_step_takes_less_than_a_prompt_that_is_computed_in_pieces() -> None:
    long = {"max_input_len": 10000, "max_seq_len": 20000}
    pieces = {"runtime": {"enable_chunked_context": True}, "plugins": {"paged_context_fmha": True}}
    assert "--max_num_tokens 8192 " in argv("0.16.0", long, **pieces)


def test_the_oldest_releases_derive_the_tokens_of_a_step_by_themselves() -> None:
    assert "max_num_tokens" not in argv("0.10.0")
    assert "--max_num_tokens 4096" in argv("0.10.0", {"max_num_tokens": 4096})


def test_attention_without_its_plugin_takes_what_runs_inside_with_it() -> None:
    text = argv("0.16.0", plugins={"gpt_attention": "disable", "rotary_embedding": False})
    assert "--context_fmha disable" in text
    assert "--remove_input_padding disable" in text
    assert "--kv_cache_type continuous" in text
    assert "max_num_tokens" not in text


def test_fused_mlp_is_off_for_weights_that_it_does_not_take() -> None:
    assert "--use_fused_mlp disable" in argv("0.13.0", precision="int8_weight_only")
    assert "fused_mlp" not in argv("0.12.0", precision="int8_weight_only")  # a flag, off unless given
    assert "fused_mlp" not in argv("0.13.0")


def test_weight_only_is_the_checkpoints_business_in_every_release() -> None:
    for release in ("0.9.0", "0.10.0", "1.2.1"):
        assert "weight_only" not in argv(release, precision="int4_weight_only")


def test_fp8_is_built_strongly_typed_where_that_is_an_option() -> None:
    fp8 = {"precision": "fp8", "activation_ranges": "./ranges.json"}
    assert "--strongly_typed --" in argv("0.10.0", **fp8)
    assert "strongly_typed" not in argv("0.11.0", **fp8)
    assert "strongly_typed" not in argv("0.10.0")


def test_options_come_last_in_the_order_of_the_release_and_win() -> None:
    options = {"tokens_per_block": 64, "gather_context_logits": True, "strip_plan": False, "nccl_plugin": "disable"}
    text = argv("0.16.0", tensor_parallel=2, options=options)
    assert text.endswith("--workers 1 --gather_context_logits --tokens_per_block 64 --nccl_plugin disable")
    assert text.count("--nccl_plugin") == 1
    assert argv("0.16.0", tensor_parallel=2, options=dict(reversed(options.items()))) == text


def test_paths_stay_one_argument_each() -> None:
    spec = TensorRtLlmEngineSpec(kind="tensorrt_llm", release="0.16.0")
    words = build_argv(spec, LimitsSpec(), dtype="float16", checkpoint="/a b/$c", out="/d'e")
    assert words[1:5] == ("--checkpoint_dir", "/a b/$c", "--output_dir", "/d'e")


@pytest.mark.parametrize("key", ["gpt_attention", "gemm"])
def test_a_plugin_of_another_number_format_than_the_weights_is_refused(key: str) -> None:
    with pytest.raises(SpecError, match=f"plugins.{key} is float16; expected auto or bfloat16") as caught:
        argv("0.16.0", dtype="bfloat16", precision="int8_weight_only", plugins={key: "float16"})
    assert caught.value.hint == f"write {key}: auto, or convert to float16"


def test_what_a_release_has_no_option_for_is_refused_with_the_releases_that_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No known release lacks these options; one to come may."""
    known = build_options.build_options(find_release("0.16.0"))
    without = {name: option for name, option in known.items() if name != "multiple_profiles"}
    monkeypatch.setattr("tritonforge.engine.tensorrt_llm.argv.build_options", lambda release: without)
    assert "multiple_profiles" not in argv("0.16.0")
    with pytest.raises(SpecError, match="0.16.0 has no option --multiple_profiles") as caught:
        argv("0.16.0", multiple_profiles=True)
    assert caught.value.hint == "releases that have it: all"


SWITCHES = st.fixed_dictionaries(
    {
        "context_fmha": st.booleans(),
        "remove_input_padding": st.booleans(),
        "paged_kv_cache": st.booleans(),
        "paged_context_fmha": st.booleans(),
        "gpt_attention": st.sampled_from(["auto", "float16", "disable"]),
        "gemm": st.sampled_from(["auto", "float16", "disable"]),
    }
)
ENGINES = st.fixed_dictionaries(
    {
        "kind": st.just("tensorrt_llm"),
        "release": st.sampled_from([release.name for release in all_releases()]),
        "precision": st.sampled_from(["float16", "int8_weight_only", "int4_weight_only", "int4_awq"]),
        "tensor_parallel": st.sampled_from([1, 2, 8]),
        "pipeline_parallel": st.sampled_from([1, 2]),
        "plugins": SWITCHES,
        "workers": st.integers(1, 16),
        "multiple_profiles": st.booleans(),
    }
)
LIMITS = st.fixed_dictionaries(
    {
        "max_batch_size": st.integers(1, 4096),
        "max_seq_len": st.integers(2, 2**20),
        "max_beam_width": st.integers(1, 8),
    }
)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(engine=ENGINES, limits=LIMITS)
def test_every_release_parses_whatever_the_specification_lets_pass(
    engine: dict[str, Any], limits: dict[str, int]
) -> None:
    try:
        spec = TensorRtLlmEngineSpec.model_validate(engine)
    except ValidationError:
        return  # a combination that cannot work
    asked = LimitsSpec.model_validate(limits)
    words = build_argv(spec, asked, dtype="float16", checkpoint=CHECKPOINT, out=OUT)
    read_back = vars(parse(find_release(spec.release), words[1:]))
    longest = read_back.get("max_seq_len") or read_back["max_input_len"] + read_back["max_output_len"]
    assert longest == asked.max_seq_len
    assert len({word for word in words if word.startswith("--")}) == sum(word.startswith("--") for word in words)
    tokens = read_back["max_num_tokens"]
    if tokens is not None and "--max_num_tokens" in words:
        assert tokens >= min(asked.max_input_len, asked.max_batch_size * asked.max_seq_len)
