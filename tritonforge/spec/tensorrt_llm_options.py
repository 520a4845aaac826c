"""Options and parameters that go to TensorRT-LLM by its own names, checked against the release table. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from tritonforge.errors import did_you_mean
from tritonforge.releases.backend import check_parameters
from tritonforge.releases.build_options import (
    BuildOption,
    all_option_names,
    build_options,
    what_replaced,
    where_option_exists,
    where_value_exists,
)
from tritonforge.releases.table import Release
from tritonforge.spec.base import BrokenRule

if TYPE_CHECKING:
    from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

FUSED_MLP_PRECISIONS = frozenset({"float16", "bfloat16", "float32", "fp8"})
_NEAREST = 3
PLUGIN_OPTIONS = {"gpt_attention": "gpt_attention_plugin", "gemm": "gemm_plugin"}


def broken_options(engine: TensorRtLlmEngineSpec, release: Release) -> Iterator[BrokenRule]:
    """Options of trtllm-build that the release does not take, or that contradict the block."""
    known = build_options(release)
    for name, value in engine.options.items():
        problem = _problem(name, value, known, release)
        if problem is not None:
            yield BrokenRule(problem, at=("options", name))
    for key, name in PLUGIN_OPTIONS.items():
        value = getattr(engine.plugins, key)
        if value != "auto" and known[name].problem_with(value) is not None:
            lines = where_value_exists(name, value)
            problem = f"is {value!r}, which TensorRT-LLM {release.name} does not take; expected a release of {lines}"
            yield BrokenRule(problem, at=("plugins", key))
    yield from _contradictions(engine, engine.options)


def broken_parameters(engine: TensorRtLlmEngineSpec, release: Release) -> Iterator[BrokenRule]:
    """Parameters of the backend that the release does not take."""
    for problem in check_parameters(release, engine.runtime.parameters):
        hint = f" ({problem.hint})" if problem.hint else ""
        yield BrokenRule(f"{problem.message}{hint}", at=("runtime", "parameters", problem.name))


def _problem(name: str, value: object, known: Mapping[str, BuildOption], release: Release) -> str | None:
    option = known.get(name)
    if option is None:
        return _absent(name, known, release)
    if option.reserved is not None:
        return f"cannot be given: {option.reserved}"
    if option.key is not None:
        return f"has a key of its own; expected {option.key}"
    problem = option.problem_with(value)
    return None if problem is None else f"is {value!r}; {problem}"


def _absent(name: str, known: Mapping[str, BuildOption], release: Release) -> str:
    lines, instead = where_option_exists(name), what_replaced(name)
    advice = f"; {instead} is its name there" if instead in known else ""
    if lines:
        return f"is no option of trtllm-build {release.name}; expected a release that has it: {lines}{advice}"
    found = f"is no option of trtllm-build in any known release{advice}"
    if advice:
        return found
    near = did_you_mean(name, all_option_names())
    if near is None:
        free = [option.name for option in known.values() if option.key is None and option.reserved is None]
        nearest = ", ".join(get_close_matches(name, free, n=_NEAREST, cutoff=0))
        near = f"`tritonforge releases {release.name} --options` lists them, among them {nearest}"
    return f"{found}; {near}"


def _contradictions(engine: TensorRtLlmEngineSpec, options: Mapping[str, Any]) -> Iterator[BrokenRule]:
    """Options that upstream refuses together, or that do nothing."""
    on = {name for name, value in options.items() if value not in ("disable", False, 0)}
    rules = {
        "opt_num_tokens": (
            engine.multiple_profiles,
            "multiple_profiles: false, since each profile has its own optimum",
        ),
        "use_fp8_context_fmha": (engine.precision != "fp8", "precision: fp8 with it"),
        "use_fused_mlp": (engine.precision not in FUSED_MLP_PRECISIONS, "it off: it takes float or fp8 weights only"),
        "user_buffer": (
            "reduce_fusion" not in on or engine.precision != "fp8",
            "reduce_fusion: enable and precision: fp8 with it",
        ),
        "pp_reduce_scatter": (True, "it off: it is for Mixtral models only"),
        "auto_parallel": (
            options.get("auto_parallel") != 1 and engine.ranks > 1,
            "1: the checkpoint is split already by tensor_parallel and pipeline_parallel",
        ),
        "streamingllm": (engine.plugins.paged_context_fmha, "plugins.paged_context_fmha: false with it"),
        "tokens_per_block": (not engine.plugins.paged_kv_cache, "plugins.paged_kv_cache: true with it"),
        "max_draft_len": (
            bool(on & {"gather_context_logits", "gather_all_token_logits"}),
            "gather_context_logits and gather_all_token_logits off",
        ),
    }
    for name in sorted(on & rules.keys()):
        broken, expected = rules[name]
        if broken:
            yield BrokenRule(f"is {options[name]!r}; expected {expected}", at=("options", name))
    blocks = options.get("tokens_per_block")
    if isinstance(blocks, int) and blocks > 0 and blocks & (blocks - 1):
        yield BrokenRule(f"is {blocks}; expected a power of two", at=("options", "tokens_per_block"))
