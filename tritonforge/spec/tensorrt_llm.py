"""The block of a version that TensorRT-LLM compiles: ``kind: tensorrt_llm``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from tritonforge.spec.base import BrokenRule, Count, ForgeModel, refuse


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
