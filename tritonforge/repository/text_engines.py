"""Engine models that take text and answer with text: what their templates are given. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from tritonforge.releases.table import find_release, version_key
from tritonforge.repository.context import FIRST_RESPONSE_BUCKETS_MS
from tritonforge.repository.engine_source import EngineSource
from tritonforge.repository.layout import engine_model_name
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.llmapi import LlmApiEngineSpec
from tritonforge.spec.serving import InstanceGroupSpec
from tritonforge.spec.vllm import VllmEngineSpec

# Folder of the checkpoint in the version folder, as the engine stage lays it out.
CHECKPOINT_FOLDER = "checkpoint"
# Triton's first version whose configs may carry model_metrics.
FIRST_WITH_HISTOGRAMS = (2, 52)


@dataclass(frozen=True, slots=True)
class TextTensor:
    """An input or output, without a batch dimension.

    Args:
        name: Its name.
        type: Its data type, as a config spells it.
        dims: Its shape.
        optional: Whether a request may lack it.
    """

    name: str
    type: str
    dims: tuple[int, ...] = (1,)
    optional: bool = True


@dataclass(frozen=True, slots=True)
class TextEngineContext:
    """Variables of the templates.

    Args:
        name: Name of the engine model, the same as its folder.
        gateway: Name of the model that clients call.
        version: Number of the version, and name of its folder.
        instance_groups: How many instances, and where.
        parameters: The model's `parameters`, in the order in which they are written.
        inputs: Its inputs.
        outputs: Its outputs.
        arguments: The engine's arguments, as the text of the file that the engine reads.
        histogram_buckets_ms: Buckets of Triton's first-response histogram; empty for servers that do not know it.
    """

    name: str
    gateway: str
    version: int
    instance_groups: tuple[InstanceGroupSpec, ...]
    parameters: Mapping[str, str]
    inputs: tuple[TextTensor, ...]
    outputs: tuple[TextTensor, ...]
    arguments: str
    histogram_buckets_ms: tuple[int, ...]


# Read in the vllm_backend repository (src/model.py, 2025 and 2026). Of its inputs, those that the gateway sends: the
# backend completes the config with the others that its release has.
VLLM_INPUTS = (
    TextTensor("text_input", "TYPE_STRING", optional=False),
    TextTensor("stream", "TYPE_BOOL"),
    TextTensor("sampling_parameters", "TYPE_STRING"),
    TextTensor("exclude_input_in_output", "TYPE_BOOL"),
    TextTensor("return_finish_reason", "TYPE_BOOL"),
    TextTensor("return_cumulative_logprob", "TYPE_BOOL"),
    TextTensor("return_logprobs", "TYPE_BOOL"),
    TextTensor("return_num_input_tokens", "TYPE_BOOL"),
    TextTensor("return_num_output_tokens", "TYPE_BOOL"),
)
VLLM_OUTPUTS = (
    TextTensor("text_output", "TYPE_STRING", (-1,)),
    TextTensor("finish_reason", "TYPE_STRING", (-1,)),
    TextTensor("cumulative_logprob", "TYPE_FP32", (-1,)),
    TextTensor("logprobs", "TYPE_STRING", (-1,)),
    TextTensor("num_input_tokens", "TYPE_UINT32"),
    TextTensor("num_output_tokens", "TYPE_UINT32", (-1,)),
)
# Read in tensorrtllm_backend v0.19.0; all of them, because the Python backend takes no input that a config lacks.
LLMAPI_INPUTS = (
    TextTensor("text_input", "TYPE_STRING", (-1,), optional=False),
    TextTensor("streaming", "TYPE_BOOL"),
    TextTensor("sampling_param_beam_width", "TYPE_INT32"),
    TextTensor("sampling_param_temperature", "TYPE_FP32"),
    TextTensor("sampling_param_top_k", "TYPE_INT32"),
    TextTensor("sampling_param_top_p", "TYPE_FP32"),
    TextTensor("sampling_param_frequency_penalty", "TYPE_FP32"),
    TextTensor("sampling_param_presence_penalty", "TYPE_FP32"),
    TextTensor("sampling_param_max_tokens", "TYPE_INT32"),
    TextTensor("sampling_param_stop", "TYPE_STRING", (-1,)),
    TextTensor("sampling_param_seed", "TYPE_UINT64"),
    TextTensor("sampling_param_exclude_input_from_output", "TYPE_BOOL"),
    TextTensor("return_finish_reason", "TYPE_BOOL"),
    TextTensor("return_stop_reason", "TYPE_BOOL"),
    TextTensor("return_cumulative_logprob", "TYPE_BOOL"),
)
LLMAPI_OUTPUTS = (
    TextTensor("text_output", "TYPE_STRING", (-1,)),
    TextTensor("finish_reason", "TYPE_STRING", (-1,)),
    TextTensor("stop_reason", "TYPE_STRING", (-1,)),
    TextTensor("cumulative_logprob", "TYPE_FP32", (-1,)),
)


def vllm_context(source: EngineSource) -> TextEngineContext:
    """The variables of a version that vLLM serves."""
    engine = source.version.engine
    assert isinstance(engine, VllmEngineSpec)  # the kind chose this builder
    parameters = _parameters(source, engine.precision)
    if engine.report_metrics:
        parameters["REPORT_CUSTOM_METRICS"] = "true"
    if engine.gpus:
        parameters["GPU_DEVICE_IDS"] = ",".join(str(gpu) for gpu in engine.gpus)
    groups = tuple(source.version.serving.instance_group)
    return _context(
        source,
        # The default of the specification is for engines on a CPU; vLLM places itself.
        instance_groups=tuple(_placed(group) for group in groups),
        parameters=parameters,
        tensors=(VLLM_INPUTS, VLLM_OUTPUTS),
        arguments=json.dumps(vllm_arguments(engine, source.version.limits, _checkpoint(source)), indent=2) + "\n",
        with_histograms=source.with_histograms,
    )


def llmapi_context(source: EngineSource) -> TextEngineContext:
    """The variables of a version that the LLM API serves."""
    engine = source.version.engine
    assert isinstance(engine, LlmApiEngineSpec)  # the kind chose this builder
    release = find_release(engine.release)
    parameters = _parameters(source, engine.precision)
    parameters["tensorrt_llm_release"] = release.name
    knows_histograms = version_key(release.containers[0].triton)[:2] >= FIRST_WITH_HISTOGRAMS
    arguments = llmapi_arguments(engine, source.version.limits, _checkpoint(source))
    return _context(
        source,
        instance_groups=(InstanceGroupSpec(kind="KIND_CPU", count=1),),
        parameters=parameters,
        tensors=(LLMAPI_INPUTS, LLMAPI_OUTPUTS),
        # Escapes beyond ASCII: PyYAML writes U+0085 and its like as line breaks, and reads something else.
        arguments=yaml.safe_dump(arguments, sort_keys=False, allow_unicode=False, default_flow_style=False),
        with_histograms=source.with_histograms or knows_histograms,
    )


def vllm_arguments(engine: VllmEngineSpec, limits: LimitsSpec, checkpoint: str) -> dict[str, Any]:
    """The engine arguments that model.json holds; what the specification leaves out is vLLM's own default."""
    given = {
        "model": checkpoint,
        "dtype": engine.dtype,
        "tensor_parallel_size": engine.tensor_parallel_size,
        "pipeline_parallel_size": engine.pipeline_parallel_size,
        "gpu_memory_utilization": engine.gpu_memory_utilization,
        "max_model_len": limits.max_seq_len,
        "max_num_seqs": engine.max_num_seqs or limits.max_batch_size,
        "max_num_batched_tokens": engine.max_num_batched_tokens or limits.max_num_tokens,
        "quantization": engine.quantization,
        "kv_cache_dtype": engine.kv_cache_dtype,
        "enforce_eager": engine.enforce_eager,
        "enable_prefix_caching": engine.enable_prefix_caching,
        "enable_chunked_prefill": engine.enable_chunked_prefill,
        "swap_space": engine.swap_space,
        "seed": engine.seed,
    }
    return {name: value for name, value in given.items() if value is not None} | engine.engine_args


def llmapi_arguments(engine: LlmApiEngineSpec, limits: LimitsSpec, checkpoint: str) -> dict[str, Any]:
    """What model.yaml holds: arguments of the LLM API, and the part that concerns Triton."""
    cache = engine.kv_cache
    kv_cache = {
        "free_gpu_memory_fraction": cache.free_gpu_memory_fraction,
        "enable_block_reuse": cache.enable_block_reuse,
        "dtype": None if cache.dtype == "auto" else cache.dtype,
        "max_tokens": cache.max_tokens,
        "host_cache_size": cache.host_cache_bytes,
    }
    given = {
        "model": checkpoint,
        "backend": "pytorch",
        "dtype": engine.dtype,
        "tensor_parallel_size": engine.tensor_parallel,
        "pipeline_parallel_size": engine.pipeline_parallel,
        "max_batch_size": limits.max_batch_size,
        "max_input_len": limits.max_input_len,
        "max_seq_len": limits.max_seq_len,
        "max_num_tokens": limits.max_num_tokens,
        "enable_chunked_prefill": engine.enable_chunked_prefill,
        "kv_cache_config": {name: value for name, value in kv_cache.items() if value is not None},
    }
    triton = {
        "max_batch_size": 0,
        "decoupled": True,
        "cancellation_check_period_ms": engine.cancellation_check_period_ms,
    }
    arguments = {name: value for name, value in given.items() if value is not None}
    return {**arguments, **engine.llm_args, "triton_config": triton}


def _placed(group: InstanceGroupSpec) -> InstanceGroupSpec:
    """An instance group as the vllm backend understands it: on one GPU per copy, or wherever vLLM goes."""
    return group if group.kind == "KIND_GPU" else InstanceGroupSpec(kind="KIND_MODEL", count=group.count)


def _checkpoint(source: EngineSource) -> str:
    return str(PurePosixPath(source.server_folder, CHECKPOINT_FOLDER))


def _parameters(source: EngineSource, precision: str) -> dict[str, str]:
    version = source.version
    return {
        "engine_kind": version.engine.kind,
        "precision": precision,
        "max_input_len": str(version.limits.max_input_len),
        "max_seq_len": str(version.limits.max_seq_len),
    }


def _context(
    source: EngineSource,
    *,
    instance_groups: tuple[InstanceGroupSpec, ...],
    parameters: Mapping[str, str],
    tensors: tuple[tuple[TextTensor, ...], tuple[TextTensor, ...]],
    arguments: str,
    with_histograms: bool,
) -> TextEngineContext:
    version = source.version
    return TextEngineContext(
        name=engine_model_name(version.model_name, version.number),
        gateway=version.model_name,
        version=version.number,
        instance_groups=instance_groups,
        parameters=parameters,
        inputs=tensors[0],
        outputs=tensors[1],
        arguments=arguments,
        histogram_buckets_ms=FIRST_RESPONSE_BUCKETS_MS if with_histograms else (),
    )
