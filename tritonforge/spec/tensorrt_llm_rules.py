"""What cannot work in the block of a TensorRT-LLM engine, whatever the checkpoint. Pure.

What upstream does with a combination is read in its source where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tritonforge.spec.base import BrokenRule

if TYPE_CHECKING:
    from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec, TensorRtLlmPlugins

FP8_ARCHITECTURE = 89
BFLOAT16_ARCHITECTURE = 80
FLOATS = ("float16", "bfloat16", "float32")
NEEDS_RANGES = ("fp8", "int8_smoothquant")
READS_RANGES = (*NEEDS_RANGES, "int4_awq")


def broken_plugins(plugins: TensorRtLlmPlugins) -> Iterator[BrokenRule]:
    """Plugins that contradict each other."""
    attention = plugins.gpt_attention
    if not plugins.rotary_embedding and plugins.in_attention:
        yield BrokenRule(
            f"is false while gpt_attention is {attention!r}; expected gpt_attention: disable with it, because "
            f"TensorRT-LLM has no switch of its own for rotary embedding: it runs inside the gpt_attention plugin",
            at=("rotary_embedding",),
        )
    if plugins.paged_context_fmha:
        needed = {
            "gpt_attention": (plugins.in_attention, "auto"),
            "context_fmha": (plugins.context_fmha, "true"),
            "paged_kv_cache": (plugins.paged_kv_cache, "true"),
            "remove_input_padding": (plugins.remove_input_padding, "true"),
        }
        for name, (given, value) in needed.items():
            if not given:
                problem = f"is true while {name} is off; expected {name}: {value}, or paged_context_fmha: false"
                yield BrokenRule(problem, at=("paged_context_fmha",))
                return


def broken_combinations(engine: TensorRtLlmEngineSpec) -> Iterator[BrokenRule]:
    """Keys of the block that contradict each other."""
    yield from _broken_precision(engine)
    yield from _broken_kv_cache(engine)
    yield from _broken_hardware(engine)
    if engine.runtime.enable_chunked_context and not engine.plugins.paged_context_fmha:
        yield BrokenRule(
            "is true while plugins.paged_context_fmha is false; expected paged_context_fmha: true with it, because "
            "the next piece of a prompt reads the pages of those before",
            at=("runtime", "enable_chunked_context"),
        )
    if engine.image is not None and engine.executor != "docker":
        problem = f"is given while executor is {engine.executor}; expected executor: docker with it"
        yield BrokenRule(problem, at=("image",))
    if engine.embedding_sharding != "none" and engine.tensor_parallel == 1:
        problem = (
            f"is {engine.embedding_sharding!r} while tensor_parallel is 1; expected none, or more GPUs to share it"
        )
        yield BrokenRule(problem, at=("embedding_sharding",))


def _broken_precision(engine: TensorRtLlmEngineSpec) -> Iterator[BrokenRule]:
    given, precision = engine.model_fields_set, engine.precision
    for key, owner in (("group_size", "int4_awq"), ("smoothquant", "int8_smoothquant")):
        if key in given and precision != owner:
            problem = f"is given while precision is {precision}; expected it left out: only {owner} has it"
            yield BrokenRule(problem, at=(key,))
    for key in ("gpt_attention", "gemm"):
        value = getattr(engine.plugins, key)
        if precision in FLOATS and value in FLOATS and value != precision:
            problem = f"is {value!r} while precision is {precision}; expected auto, or the same"
            yield BrokenRule(problem, at=("plugins", key))
    gemm = engine.plugins.gemm
    if gemm in {"fp8", "nvfp4"} and gemm != precision:
        problem = f"is {gemm!r} while precision is {precision}; expected auto: it multiplies {gemm} weights only"
        yield BrokenRule(problem, at=("plugins", "gemm"))
    yield from _broken_ranges(engine)


def _broken_ranges(engine: TensorRtLlmEngineSpec) -> Iterator[BrokenRule]:
    precision, kv_cache = engine.precision, engine.kv_cache
    needed = [f"precision: {precision}"] if precision in NEEDS_RANGES else []
    needed += ["kv_cache: int8"] if kv_cache == "int8" else []
    if needed and engine.activation_ranges is None:
        problem = (
            f"is missing; expected a file of activation ranges, which {' and '.join(needed)} needs: "
            f"docs/quantisation.md has a script that records them"
        )
        yield BrokenRule(problem, at=("activation_ranges",))
    if engine.activation_ranges is not None and kv_cache == "auto" and precision not in READS_RANGES:
        problem = (
            f"is given while precision is {precision} and kv_cache is auto; expected it left out: nothing reads it"
        )
        yield BrokenRule(problem, at=("activation_ranges",))


def _broken_kv_cache(engine: TensorRtLlmEngineSpec) -> Iterator[BrokenRule]:
    """Paged context FMHA reads the cache itself, and cannot read every number format."""
    if not engine.plugins.paged_context_fmha:
        return
    if engine.kv_cache == "int8":
        problem = "is 'int8' while plugins.paged_context_fmha is true, which cannot read it; expected auto, or it false"
        yield BrokenRule(problem, at=("kv_cache",))
    if engine.kv_cache == "fp8" and engine.precision != "fp8":
        problem = (
            f"is 'fp8' while plugins.paged_context_fmha is true and precision is {engine.precision}; expected "
            f"precision: fp8 with it, kv_cache: auto, or paged_context_fmha: false"
        )
        yield BrokenRule(problem, at=("kv_cache",))


def _broken_hardware(engine: TensorRtLlmEngineSpec) -> Iterator[BrokenRule]:
    if engine.gpus and len(set(engine.gpus)) != len(engine.gpus):
        yield BrokenRule(f"is {list(engine.gpus)}; expected each number once", at=("gpus",))
    elif engine.gpus and len(engine.gpus) != engine.ranks:
        ranks = f"tensor_parallel {engine.tensor_parallel} x pipeline_parallel {engine.pipeline_parallel}"
        problem = f"has {len(engine.gpus)} numbers; expected {engine.ranks}, one for each rank ({ranks})"
        yield BrokenRule(problem, at=("gpus",))
    if engine.gpu_architecture is None:
        return
    number = int(engine.gpu_architecture.removeprefix("sm_").rstrip("a"))
    needs = {"fp8": FP8_ARCHITECTURE, "bfloat16": BFLOAT16_ARCHITECTURE}
    for key, value in (("precision", engine.precision), ("kv_cache", engine.kv_cache)):
        if number < needs.get(value, 0):
            problem = f"is {value!r} while gpu_architecture is {engine.gpu_architecture}; expected sm_{needs[value]} up"
            yield BrokenRule(problem, at=(key,))
