"""The exact command line of trtllm-build for a specification and a release. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tritonforge.errors import SpecError
from tritonforge.releases.build_options import BuildOption, Value, build_options, where_option_exists
from tritonforge.releases.table import find_release
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec
from tritonforge.spec.tensorrt_llm_options import FUSED_MLP_PRECISIONS

PROGRAM = "trtllm-build"
Options = Mapping[str, BuildOption]
Setting = tuple[str, Value]


def build_argv(
    spec: TensorRtLlmEngineSpec, limits: LimitsSpec, *, dtype: str, checkpoint: str, out: str
) -> tuple[str, ...]:
    """Program and arguments that build an engine.

    Whatever the specification speaks of is written out, even where it is the release's default, because defaults
    changed between releases. The order depends on nothing but the release's options.

    Args:
        spec: The engine.
        limits: Its limits.
        dtype: Float type of the checkpoint: float16, bfloat16 or float32.
        checkpoint: Folder of the TensorRT-LLM checkpoint, as the program sees it.
        out: Folder for the engine, as the program sees it.

    Raises:
        SpecError: A plugin's number format is not the checkpoint's, or the release has no option for what is asked.
    """
    options = build_options(find_release(spec.release))
    own: list[Setting] = [
        ("checkpoint_dir", checkpoint),
        ("output_dir", out),
        *_limits(spec, limits, options),
        *_plugins(spec, dtype, options),
        *_switches(spec, options),
        ("multiple_profiles", spec.multiple_profiles),
        ("workers", spec.workers),
    ]
    written = [setting for setting in own if setting[0] not in spec.options]
    written += [(name, spec.options[name]) for name in options if name in spec.options]
    return (PROGRAM, *(word for name, value in written for word in _words(spec, options, name, value)))


def _limits(spec: TensorRtLlmEngineSpec, limits: LimitsSpec, options: Options) -> Iterator[Setting]:
    yield "max_batch_size", limits.max_batch_size
    yield "max_input_len", limits.max_input_len
    if "max_seq_len" in options:
        yield "max_seq_len", limits.max_seq_len
    else:  # before 0.11 the engine's sequence is the longest prompt and the longest answer one after the other
        yield "max_output_len", limits.max_seq_len - limits.max_input_len
    yield "max_beam_width", limits.max_beam_width
    num_tokens = _num_tokens(spec, limits, options["max_num_tokens"])
    if num_tokens is not None:
        yield "max_num_tokens", num_tokens


def _num_tokens(spec: TensorRtLlmEngineSpec, limits: LimitsSpec, option: BuildOption) -> int | None:
    """Tokens of one step: the release's default unless a prompt would not fit; None when the release derives it."""
    if limits.max_num_tokens is not None:
        return limits.max_num_tokens
    packed = spec.plugins.in_attention and spec.plugins.remove_input_padding
    if not packed or not isinstance(option.default, int):
        return None
    whole_prompt = 0 if spec.runtime.enable_chunked_context else limits.max_input_len
    needed = max(option.default, whole_prompt, limits.max_batch_size * limits.max_beam_width)
    return min(needed, limits.max_batch_size * limits.max_seq_len)  # more can never be waiting


def _plugins(spec: TensorRtLlmEngineSpec, dtype: str, options: Options) -> Iterator[Setting]:
    for key, name in (("gpt_attention", "gpt_attention_plugin"), ("gemm", "gemm_plugin")):
        yield name, _plugin(key, getattr(spec.plugins, key), dtype, options[name])
    if spec.ranks > 1 and "nccl_plugin" in options:
        # 0.10 takes float16 when nothing is said, whatever the checkpoint's type.
        yield "nccl_plugin", _plugin("nccl", "auto", dtype, options["nccl_plugin"])


def _plugin(key: str, asked: str, dtype: str, option: BuildOption) -> str:
    """A plugin's number format; ``auto`` spelt out for releases that do not know the word."""
    floats = ("float16", "bfloat16", "float32")
    if asked in floats and asked != dtype:
        raise SpecError(
            f"plugins.{key} is {asked}; expected auto or {dtype}, the float type of the checkpoint",
            hint=f"write {key}: auto, or convert to {asked}",
        )
    return dtype if asked == "auto" and "auto" not in option.choices else asked


def _switches(spec: TensorRtLlmEngineSpec, options: Options) -> Iterator[Setting]:
    plugins, fp8 = spec.plugins, spec.precision == "fp8"
    # These run inside the attention plugin: plain TensorRT attention refuses pages, and has no packed input.
    inside = plugins.in_attention
    yield "context_fmha", inside and plugins.context_fmha
    yield "use_paged_context_fmha", plugins.paged_context_fmha
    yield "remove_input_padding", inside and plugins.remove_input_padding
    paged = inside and plugins.paged_kv_cache
    if "kv_cache_type" in options:
        yield "kv_cache_type", "paged" if paged else "continuous"
    else:
        yield "paged_kv_cache", paged
    if fp8 and spec.kv_cache == "fp8" and plugins.paged_context_fmha:
        yield "use_fp8_context_fmha", True  # pages of fp8 are read by no other kernel
    if fp8 and "strongly_typed" in options:
        yield "strongly_typed", True  # as later releases always build; they have no option for it
    fused = options.get("use_fused_mlp")
    if spec.precision not in FUSED_MLP_PRECISIONS and fused is not None and fused.default == "enable":
        yield "use_fused_mlp", False  # it takes no such weights; upstream turns it off without a word


def _words(spec: TensorRtLlmEngineSpec, options: Options, name: str, value: Value) -> tuple[str, ...]:
    option = options.get(name)
    if option is not None:
        return option.words(value)
    if value is False:
        return ()
    raise SpecError(
        f"TensorRT-LLM {spec.release} has no option --{name}, which the specification needs for {value!r}",
        hint=f"releases that have it: {where_option_exists(name)}",
    )
