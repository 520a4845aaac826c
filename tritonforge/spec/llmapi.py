"""The block of a version that TensorRT-LLM serves without an engine build, through its LLM API: ``kind: llmapi``.

Names are those of the LLM API's arguments (read in the documentation of 0.19 to 1.4) and of the model.yaml that
upstream's Triton model reads (tensorrtllm_backend v0.19.0, later NVIDIA/TensorRT-LLM).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from tritonforge.errors import UnknownRelease
from tritonforge.releases.table import find_release, version_key
from tritonforge.spec.base import Count, ForgeModel, Tokens, refuse
from tritonforge.spec.passed_options import ONLY_TEXT, OTHER_MODEL, OptionRules, PassedOptions

FIRST_LINE = (0, 19)
_RULES = OptionRules(
    field="llm_args",
    written_as={
        "tensor_parallel_size": "engine.tensor_parallel",
        "pipeline_parallel_size": "engine.pipeline_parallel",
        "dtype": "engine.dtype",
        "kv_cache_config": "engine.kv_cache",
        "enable_chunked_prefill": "engine.enable_chunked_prefill",
        "max_batch_size": "limits.max_batch_size",
        "max_input_len": "limits.max_input_len",
        "max_seq_len": "limits.max_seq_len",
        "max_num_tokens": "limits.max_num_tokens",
        "max_beam_width": "limits.max_beam_width",
    },
    refused={
        **dict.fromkeys(
            ("model", "tokenizer", "revision", "tokenizer_revision", "workspace", "model_kwargs"), OTHER_MODEL
        ),
        **dict.fromkeys(("skip_tokenizer_init", "backend", "triton_config"), "the version's Triton model settles it"),
        **dict.fromkeys(("enable_lora", "lora_config"), "a request to the gateway cannot name an adapter"),
        "multimodal": ONLY_TEXT,
    },
    hostile=frozenset(
        {
            "trust_remote_code",
            "custom_tokenizer",
            "post_processor_hook",
            "logits_post_processors",
            "logits_post_processor_map",
            "batched_logits_processor",
            "checkpoint_loader",
            "custom_module_dirs",
            "ray_worker_extension_cls",
            "kv_connector_config",
            "env_overrides",
        }
    ),
    located=frozenset({"speculative_model", "speculative_model_dir"}),
)


def _check_release(name: str) -> str:
    try:
        release = find_release(name)
    except UnknownRelease as error:
        raise ValueError(f"expected one like {' or '.join(error.nearest)}, the nearest in the release table") from None
    if version_key(release.line) < FIRST_LINE:
        raise ValueError("expected 0.19.0 or later, the first release with the LLM API in Triton")
    return name


LlmApiRelease = Annotated[
    str,
    AfterValidator(_check_release),
    WithJsonSchema({"type": "string", "pattern": r"^\d+\.\d+\.\d+(\.(post)?\d+)?$", "examples": ["1.0.0"]}),
]


class LlmApiKvCache(ForgeModel):
    """The KV cache of the LLM API."""

    free_gpu_memory_fraction: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of the GPU memory left after loading the weights that the KV cache takes (0 to 1)."""

    enable_block_reuse: bool = True
    """Keep the KV cache of finished prompts for prompts that begin alike."""

    dtype: Literal["auto", "fp8"] = "auto"
    """Number format of the KV cache; auto follows the checkpoint. fp8 needs a release whose KvCacheConfig has it."""

    max_tokens: Tokens | None = None
    """Most tokens in the KV cache over all requests; left out, only the share of memory counts."""

    host_cache_bytes: Annotated[int, Field(ge=0, le=2**50)] | None = None
    """Memory of the host in bytes for blocks that the GPU has no room for; left out, none."""


class LlmApiEngineSpec(ForgeModel):
    """TensorRT-LLM's LLM API (its PyTorch path): serves the checkpoint as it is, on NVIDIA GPUs."""

    kind: Literal["llmapi"]
    """TensorRT-LLM's LLM API as a model of Triton's Python backend; compiles nothing."""

    release: LlmApiRelease
    """TensorRT-LLM release in quotes, 0.19.0 or later; it decides the container."""

    dtype: Literal["auto", "float16", "bfloat16", "float32"] = "auto"
    """Number format of weights and activations; auto follows the checkpoint."""

    tensor_parallel: Count = 1
    """GPUs that share every layer."""

    pipeline_parallel: Count = 1
    """Groups of GPUs that each hold some of the layers."""

    kv_cache: LlmApiKvCache = LlmApiKvCache()
    """The KV cache."""

    enable_chunked_prefill: bool = False
    """Compute long prompts in pieces between the steps of other requests."""

    cancellation_check_period_ms: Annotated[int, Field(ge=1, le=60_000)] = 100
    """Milliseconds between two looks at whether clients are still there."""

    llm_args: PassedOptions = Field(default_factory=dict)
    """Any other arguments of the LLM API, passed on as they are. Arguments that run code or name another model are
    refused."""

    @property
    def world_size(self) -> int:
        """GPUs that the engine takes."""
        return self.tensor_parallel * self.pipeline_parallel

    @property
    def precision(self) -> str:
        """Number format of the weights, for reports."""
        return self.dtype

    @model_validator(mode="after")
    def _can_be_passed_on(self) -> Self:
        refuse(_RULES.broken(self.llm_args))
        return self
