"""Limits that one kind of engine cannot keep, though they are right by themselves. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tritonforge.spec.engine import EngineSpec
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.openvino import OpenVinoEngineSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

Broken = Iterator[tuple[str, str]]


def broken_limits(engine: EngineSpec, limits: LimitsSpec) -> Broken:
    """Limits that do not fit an engine, each with the name of its key and what is wrong with it.

    Args:
        engine: The engine of a version.
        limits: The version's limits, with what it inherits.
    """
    if not isinstance(engine, TensorRtLlmEngineSpec) and limits.max_beam_width > 1:
        yield "max_beam_width", f"is {limits.max_beam_width}; expected 1: no beam search in {engine.kind} engines here"
    if isinstance(engine, OpenVinoEngineSpec) and limits.max_num_tokens is not None:
        expected = "it left out: the openvino engine has runtime.max_num_batched_tokens"
        yield "max_num_tokens", f"is {limits.max_num_tokens}; expected {expected}"
    if isinstance(engine, TensorRtLlmEngineSpec):
        yield from _of_tensorrt_llm(engine, limits)


def _of_tensorrt_llm(engine: TensorRtLlmEngineSpec, limits: LimitsSpec) -> Broken:
    tokens = limits.max_num_tokens
    if tokens is None:
        return
    if not (engine.plugins.in_attention and engine.plugins.remove_input_padding):
        yield "max_num_tokens", f"is {tokens}; expected it left out without remove_input_padding: padding counts too"
    elif tokens < limits.max_input_len and not engine.runtime.enable_chunked_context:
        expected = f"at least max_input_len ({limits.max_input_len}), since a whole prompt is computed in one step"
        yield "max_num_tokens", f"is {tokens}; expected {expected} unless runtime.enable_chunked_context is true"
    optimum = engine.options.get("opt_num_tokens", 0)
    if optimum > tokens:
        yield "max_num_tokens", f"is {tokens}; expected at least options.opt_num_tokens ({optimum})"
