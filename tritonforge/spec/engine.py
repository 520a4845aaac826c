"""Which engine computes the tokens, and how it is compiled. Two kinds, told apart by ``kind``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from tritonforge.spec.base import BrokenRule, Count, ForgeModel, Tokens, refuse

GIB_BYTES = 2**30


class OpenVinoPlugins(ForgeModel):
    """Fused parts of the graph; each switch off builds the unfused form, so that its effect can be measured."""

    context_fmha: bool = True
    """Fused attention (true) or attention spelt out in separate operations (false)."""

    rotary_embedding: bool = True
    """Fused rotary embedding (true) or spelt out in separate operations (false)."""


class OpenVinoRuntime(ForgeModel):
    """Settings that the engine reads when it is loaded."""

    num_threads: Count | None = None
    """CPU threads; left out, the engine takes all cores that it is allowed to use."""

    kv_cache_precision: Literal["auto", "f32", "f16", "u8"] = "auto"
    """Number format of the KV cache. auto is f32 for float32 and float16 weights (answers equal the reference) and u8
    for int8 and int4 weights."""

    kv_cache_gib: Annotated[float, Field(gt=0, le=4096)] = 1.0
    """Memory of the KV cache in GiB."""

    enable_prefix_caching: bool = True
    """Keep the KV cache of finished prompts and use it again for prompts that begin alike."""

    max_num_batched_tokens: Tokens = 256
    """Most tokens computed in one step over all requests; smaller values shorten the stall that a long prompt causes
    in other streams."""

    @property
    def kv_cache_bytes(self) -> int:
        """Memory of the KV cache in bytes."""
        return int(self.kv_cache_gib * GIB_BYTES)


class OpenVinoEngineSpec(ForgeModel):
    """The embedded engine: runs on any CPU."""

    kind: Literal["openvino"]
    """Engine for any CPU."""

    precision: Literal["float32", "float16", "int8", "int4"] = "int8"
    """Number format of the weights."""

    plugins: OpenVinoPlugins = OpenVinoPlugins()
    """Fused parts of the graph."""

    runtime: OpenVinoRuntime = OpenVinoRuntime()
    """Threads, KV cache and batching of the running engine."""

    @property
    def kv_cache_precision(self) -> Literal["f32", "f16", "u8"]:
        """Number format of the KV cache with ``auto`` decided."""
        asked = self.runtime.kv_cache_precision
        if asked != "auto":
            return asked
        return "f32" if self.precision in {"float32", "float16"} else "u8"


class TensorRtLlmPlugins(ForgeModel):
    """Build switches of TensorRT-LLM."""

    context_fmha: bool = True
    """Fused multi-head attention for prompts (the FMHA plugin): a flag inside gpt_attention."""

    rotary_embedding: bool = True
    """Fused rotary embedding. TensorRT-LLM has no switch for it: it runs inside gpt_attention, so false needs
    gpt_attention: disable."""

    gpt_attention: Literal["auto", "float16", "bfloat16", "float32", "disable"] = "auto"
    """Attention plugin and its number format; auto follows the weights."""

    gemm: Literal["auto", "float16", "bfloat16", "float32", "fp8", "nvfp4", "disable"] = "auto"
    """Matrix multiplication plugin and its number format; auto follows the weights."""

    remove_input_padding: bool = True
    """Pack the tokens of a batch without padding."""

    paged_kv_cache: bool = True
    """Keep the KV cache in pages, as in-flight batching needs."""

    @model_validator(mode="after")
    def _rotary_runs_inside_gpt_attention(self) -> Self:
        if not self.rotary_embedding and self.gpt_attention != "disable":
            problem = (
                f"is false while gpt_attention is {self.gpt_attention!r}; expected gpt_attention: disable with it, "
                f"because TensorRT-LLM has no switch of its own for rotary embedding: it runs inside the "
                f"gpt_attention plugin"
            )
            refuse([BrokenRule(problem, at=("rotary_embedding",))])
        return self


class TensorRtLlmRuntime(ForgeModel):
    """Settings that the tensorrtllm backend reads when the engine is loaded."""

    batch_scheduler_policy: Literal["guaranteed_no_evict", "max_utilization"] = "guaranteed_no_evict"
    """Whether a request that was started may be paused (max_utilization) when the KV cache is full."""

    kv_cache_free_gpu_mem_fraction: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of the GPU memory left after loading the weights that the KV cache takes (0 to 1)."""

    enable_chunked_context: bool = False
    """Compute long prompts in pieces between the steps of other requests."""


def _check_release(release: str) -> str:
    parts = release.split(".")
    post = parts[-1].removeprefix("post") if len(parts) > 3 else "0"
    numbers = [*parts[:3], post]
    if len(parts) not in {3, 4} or not all(number.isascii() and number.isdigit() for number in numbers):
        raise ValueError('expected a TensorRT-LLM release such as "0.16.0" or "0.17.0.post1"')
    return release


Release = Annotated[
    str,
    AfterValidator(_check_release),
    WithJsonSchema({"type": "string", "pattern": r"^\d+\.\d+\.\d+(\.(post)?\d+)?$", "examples": ["0.16.0", "1.2.1"]}),
]


class TensorRtLlmEngineSpec(ForgeModel):
    """NVIDIA's TensorRT-LLM engine: compiled by trtllm-build, runs on NVIDIA GPUs."""

    kind: Literal["tensorrt_llm"]
    """Engine for NVIDIA GPUs."""

    release: Release
    """TensorRT-LLM release in quotes; it decides flags, parameters and container."""

    precision: Literal[
        "float16",
        "bfloat16",
        "float32",
        "int8_weight_only",
        "int4_weight_only",
        "int4_awq",
        "int8_smoothquant",
        "fp8",
    ] = "float16"
    """Number format of the weights, and of the activations for int8_smoothquant and fp8."""

    tensor_parallel: Count = 1
    """GPUs that share every layer."""

    pipeline_parallel: Count = 1
    """Groups of GPUs that each hold some of the layers."""

    plugins: TensorRtLlmPlugins = TensorRtLlmPlugins()
    """Build switches."""

    runtime: TensorRtLlmRuntime = TensorRtLlmRuntime()
    """Settings that the backend reads when the engine is loaded."""

    executor: Literal["docker", "local"] = "docker"
    """Where trtllm-build runs: in the release's container, or as installed here."""


EngineSpec = Annotated[OpenVinoEngineSpec | TensorRtLlmEngineSpec, Field(discriminator="kind")]
