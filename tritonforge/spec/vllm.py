"""The block of a version that vLLM serves: ``kind: vllm``.

Names are those of vLLM's engine arguments (read in its documentation of 0.6.3 to 0.16) and of the Triton backend's
parameters (read in the vllm_backend repository).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tritonforge.spec.base import BrokenRule, Count, ForgeModel, Tokens, refuse
from tritonforge.spec.passed_options import ONLY_TEXT, OTHER_MODEL, SECRET, OptionRules, PassedOptions
from tritonforge.spec.serving import GpuIds

_EXECUTORS = ("mp", "ray", "uni")
_LOAD_FORMATS = ("auto", "safetensors", "fastsafetensors", "dummy")
_COMPILERS = ("", "eager", "inductor", "openxla")
_RULES = OptionRules(
    field="engine_args",
    written_as={
        "max_model_len": "limits.max_seq_len",
        **{
            name: f"engine.{name}"
            for name in (
                "dtype",
                "tensor_parallel_size",
                "pipeline_parallel_size",
                "gpu_memory_utilization",
                "max_num_seqs",
                "max_num_batched_tokens",
                "quantization",
                "kv_cache_dtype",
                "enforce_eager",
                "enable_prefix_caching",
                "enable_chunked_prefill",
                "swap_space",
                "seed",
            )
        },
    },
    refused={
        **dict.fromkeys(
            (
                "model",
                "tokenizer",
                "hf_config_path",
                "revision",
                "code_revision",
                "tokenizer_revision",
                "download_dir",
                "model_loader_extra_config",
            ),
            OTHER_MODEL,
        ),
        "hf_token": SECRET,
        **dict.fromkeys(("skip_tokenizer_init", "task", "runner", "convert", "enable_prompt_embeds"), ONLY_TEXT),
        **dict.fromkeys(("allowed_local_media_path", "allowed_media_domains"), ONLY_TEXT),
        "enable_lora": "a request to the gateway cannot name an adapter",
    },
    hostile=frozenset(
        {
            "trust_remote_code",
            "worker_cls",
            "worker_extension_cls",
            "scheduler_cls",
            "logits_processors",
            "logits_processor_pattern",
            "io_processor_plugin",
            "reasoning_parser_plugin",
            "tool_parser_plugin",
            "kv_transfer_config",
            "ec_transfer_config",
            "kv_connector_module_path",
            "inductor_passes",
            "auto_map",
        }
    ),
    located=frozenset({"model", "speculative_model", "draft_model"}),
)


class VllmEngineSpec(ForgeModel):
    """vLLM through Triton's vllm backend: serves the checkpoint as it is, on GPUs."""

    kind: Literal["vllm"]
    """vLLM through Triton's vllm backend; compiles nothing."""

    dtype: Literal["auto", "float16", "bfloat16", "float32"] = "auto"
    """Number format of weights and activations; auto follows the checkpoint."""

    tensor_parallel_size: Count = 1
    """GPUs that share every layer."""

    pipeline_parallel_size: Count = 1
    """Groups of GPUs that each hold some of the layers."""

    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of each GPU's memory for weights, activations and KV cache together (0 to 1)."""

    max_num_seqs: Count | None = None
    """Most requests in one step; left out, limits.max_batch_size."""

    max_num_batched_tokens: Tokens | None = None
    """Most tokens computed in one step over all requests; left out, vLLM decides."""

    quantization: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=64)] | None = None
    """How the weights are quantised, for example awq, gptq or fp8; left out, as the checkpoint's config.json says."""

    kv_cache_dtype: Literal["auto", "fp8", "fp8_e4m3", "fp8_e5m2"] = "auto"
    """Number format of the KV cache; auto follows dtype."""

    enforce_eager: bool = False
    """Run without CUDA graphs: starts sooner and takes less memory, but answers more slowly."""

    enable_prefix_caching: bool | None = None
    """Keep the KV cache of finished prompts for prompts that begin alike; left out, vLLM decides."""

    enable_chunked_prefill: bool | None = None
    """Compute long prompts in pieces between the steps of other requests; left out, vLLM decides."""

    swap_space: Annotated[float, Field(ge=0, le=4096)] | None = None
    """Memory of the host for paused requests in GiB per GPU; only for vLLM releases that have it."""

    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    """Seed of requests that bring none of their own."""

    gpus: GpuIds = ()
    """GPU numbers of this version, as many as tensor_parallel_size times pipeline_parallel_size; empty means those
    that vLLM takes. Only backends that know the parameter GPU_DEVICE_IDS follow it."""

    report_metrics: bool = False
    """Show vLLM's own metrics at Triton's metrics endpoint."""

    engine_args: PassedOptions = Field(default_factory=dict)
    """Any other engine arguments of vLLM, passed on as they are. Arguments that run code or name another model are
    refused."""

    @property
    def world_size(self) -> int:
        """GPUs that one instance takes."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def precision(self) -> str:
        """Number format of the weights, for reports."""
        return self.quantization or self.dtype

    @model_validator(mode="after")
    def _can_be_passed_on(self) -> Self:
        broken = list(_RULES.broken(self.engine_args))
        for name, choices in (("distributed_executor_backend", _EXECUTORS), ("load_format", _LOAD_FORMATS)):
            value = self.engine_args.get(name)
            if value is not None and value not in choices:
                problem = f"is {value!r}; expected one of {', '.join(choices)}: others run code or unpack pickles"
                broken.append(BrokenRule(problem, at=("engine_args", name)))
        compilation = self.engine_args.get("compilation_config")
        compiler = compilation.get("backend", "") if isinstance(compilation, dict) else ""
        if compiler not in _COMPILERS:
            problem = f"is {compiler!r}; expected one of {', '.join(_COMPILERS[1:])}: others name code to run"
            broken.append(BrokenRule(problem, at=("engine_args", "compilation_config", "backend")))
        refuse([*broken, *self._broken_gpus()])
        return self

    def _broken_gpus(self) -> list[BrokenRule]:
        gpus, broken = list(self.gpus), []
        if gpus and len(gpus) != self.world_size:
            expected = f"{self.world_size}, tensor_parallel_size times pipeline_parallel_size"
            broken.append(BrokenRule(f"is {gpus}, {len(gpus)} GPUs; expected {expected}", at=("gpus",)))
        if len(set(gpus)) != len(gpus):
            broken.append(BrokenRule(f"is {gpus}; expected each number once", at=("gpus",)))
        return broken
