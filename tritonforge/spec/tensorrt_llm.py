"""The block of a version that TensorRT-LLM compiles: ``kind: tensorrt_llm``."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from tritonforge.errors import UnknownRelease
from tritonforge.releases.table import all_releases, find_release
from tritonforge.spec.base import Count, ForgeModel, LocalPath, refuse
from tritonforge.spec.serving import GpuIds
from tritonforge.spec.tensorrt_llm_options import broken_options, broken_parameters
from tritonforge.spec.tensorrt_llm_rules import broken_combinations, broken_plugins

ARCHITECTURE = r"^sm_[0-9]{2,3}a?$"
_VALUE = {"type": ["string", "number", "boolean", "array"]}
_NAME = {"propertyNames": {"pattern": "^[a-z][a-z0-9_]*$"}}
# Any, because the release table says what each one takes.
Values = Annotated[dict[str, Annotated[Any, WithJsonSchema(_VALUE)]], Field(json_schema_extra=_NAME)]


class TensorRtLlmPlugins(ForgeModel):
    """Build switches of TensorRT-LLM."""

    context_fmha: bool = True
    """Fused multi-head attention for prompts (the FMHA plugin): a flag inside gpt_attention."""

    rotary_embedding: bool = True
    """Fused rotary embedding. TensorRT-LLM has no switch for it: it runs inside gpt_attention, so false needs
    gpt_attention: disable."""

    gpt_attention: Literal["auto", "float16", "bfloat16", "float32", "disable"] = "auto"
    """Attention plugin and its number format; auto follows the weights. disable turns off with it what runs inside it:
    context_fmha, remove_input_padding and paged_kv_cache."""

    gemm: Literal["auto", "float16", "bfloat16", "float32", "fp8", "nvfp4", "disable"] = "auto"
    """Matrix multiplication plugin and its number format; auto follows the weights."""

    remove_input_padding: bool = True
    """Pack the tokens of a batch without padding."""

    paged_kv_cache: bool = True
    """Keep the KV cache in pages, as in-flight batching needs."""

    paged_context_fmha: bool = False
    """Fused attention for prompts that reads the KV cache in its pages, as chunked context and the reuse of KV blocks
    need."""

    @property
    def in_attention(self) -> bool:
        """Whether the parts that run inside the attention plugin can be on."""
        return self.gpt_attention != "disable"

    @model_validator(mode="after")
    def _plugins_fit_together(self) -> Self:
        refuse(broken_plugins(self))
        return self


class TensorRtLlmRuntime(ForgeModel):
    """Settings that the tensorrtllm backend reads when the engine is loaded."""

    batch_scheduler_policy: Literal["guaranteed_no_evict", "max_utilization"] = "guaranteed_no_evict"
    """Whether a request that was started may be paused (max_utilization) when the KV cache is full."""

    kv_cache_free_gpu_mem_fraction: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of the GPU memory left after loading the weights that the KV cache takes (0 to 1)."""

    enable_chunked_context: bool = False
    """Compute long prompts in pieces between the steps of other requests; needs plugins.paged_context_fmha."""

    parameters: Values = {}
    """Other parameters of the release's backend, by name."""


class TensorRtLlmSmoothQuant(ForgeModel):
    """How activations and weights share the difficulty of eight bits (SmoothQuant)."""

    alpha: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of it that moves into the weights (0 to 1)."""

    per_channel: bool = True
    """A scale for each output channel of the weights (true) or one for all (false)."""

    per_token: bool = True
    """Scales of the activations computed for each token (true) or fixed from the activation ranges (false)."""


def _check_release(release: str) -> str:
    try:
        return find_release(release).name
    except UnknownRelease as error:
        if release[:1].isdecimal():
            expected = f"one of the release table; the nearest there: {' and '.join(error.nearest)}"
        else:
            expected = 'a TensorRT-LLM release such as "0.16.0"'
        raise ValueError(f"expected {expected}") from None


def _check_image(image: str) -> str:
    if re.fullmatch(r"[a-z0-9][a-zA-Z0-9._:/@-]{0,254}", image) is None:
        raise ValueError("expected the name of a container image, such as registry/name:tag")
    return image


def _check_architecture(name: str) -> str:
    if re.fullmatch(ARCHITECTURE.strip("^$"), name) is None:
        raise ValueError("expected an architecture such as sm_90")
    return name


Release = Annotated[
    str,
    AfterValidator(_check_release),
    WithJsonSchema({"type": "string", "enum": [release.name for release in all_releases()]}),
]
Image = Annotated[str, AfterValidator(_check_image), WithJsonSchema({"type": "string", "pattern": "^[a-z0-9]"})]
GpuArchitecture = Annotated[
    str, AfterValidator(_check_architecture), WithJsonSchema({"type": "string", "pattern": ARCHITECTURE})
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

    kv_cache: Literal["auto", "int8", "fp8"] = "auto"
    """Number format of the KV cache; auto is that of the float weights. int8 needs activation_ranges; without them
    every scale of fp8 is 1."""

    group_size: Literal[64, 128] = 128
    """Weights that share a scale in int4_awq."""

    smoothquant: TensorRtLlmSmoothQuant = TensorRtLlmSmoothQuant()
    """Settings of int8_smoothquant."""

    activation_ranges: LocalPath | None = None
    """File of activation ranges or scales, for fp8, int8_smoothquant, an int8 or fp8 KV cache, and int4_awq; relative
    to this file."""

    tensor_parallel: Count = 1
    """GPUs that share every layer."""

    pipeline_parallel: Count = 1
    """Groups of GPUs that each hold some of the layers."""

    embedding_sharding: Literal["none", "vocab", "hidden"] = "none"
    """Whether the tensor-parallel GPUs share the embedding table, and along which axis; none gives each the whole."""

    gpus: GpuIds = ()
    """GPU numbers of the engine, one for each rank (tensor_parallel times pipeline_parallel); empty means the first
    ones."""

    gpu_architecture: GpuArchitecture | None = None
    """Architecture of the GPUs that the engine is for, such as sm_90; left out, that of the GPU that builds it."""

    plugins: TensorRtLlmPlugins = TensorRtLlmPlugins()
    """Build switches."""

    runtime: TensorRtLlmRuntime = TensorRtLlmRuntime()
    """Settings that the backend reads when the engine is loaded."""

    executor: Literal["docker", "local"] = "docker"
    """Where trtllm-build runs: in the release's container, or as installed here."""

    image: Image | None = None
    """Container image for the docker executor; left out, the newest of the release table for the release."""

    workers: Count = 1
    """Ranks that trtllm-build compiles side by side; it takes as many as it sees GPUs at most."""

    multiple_profiles: bool = False
    """Several optimisation profiles for different loads; builds longer, may run faster."""

    options: Values = {}
    """Other options of the release's trtllm-build, by name without dashes; a flag without value is true or false."""

    @property
    def ranks(self) -> int:
        """GPUs that serve one copy of the engine."""
        return self.tensor_parallel * self.pipeline_parallel

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        release = find_release(self.release)
        refuse([*broken_combinations(self), *broken_options(self, release), *broken_parameters(self, release)])
        return self
