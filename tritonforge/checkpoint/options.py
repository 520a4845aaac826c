"""What can be chosen when a checkpoint is converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonforge.errors import UsageBug
from tritonforge.formats.trtllm import FLOAT_TYPES

AUTO = "auto"
# In the spelling of forge.yaml. The float types come first; the others need `tritonforge.checkpoint.quantize`.
QUANTISED = ("int8_weight_only", "int4_weight_only", "int4_awq", "int8_smoothquant", "fp8")
PRECISIONS = ("float16", "bfloat16", "float32", *QUANTISED)
SHARDINGS = ("none", "vocab", "hidden")
KV_CACHES = ("auto", "int8", "fp8")
GROUP_SIZES = (64, 128)
DEFAULT_RELEASE = "0.16.0"
# For messages: how an option is written on a command line, and its key in forge.yaml.
WRITTEN: Mapping[str, tuple[str, str]] = {
    "tp": ("--tp", "tensor_parallel"),
    "pp": ("--pp", "pipeline_parallel"),
    "embedding_sharding": ("--embedding-sharding", "embedding_sharding"),
    "group_size": ("--group-size", "group_size"),
    "activation_ranges": ("--activation-ranges", "activation_ranges"),
    "release": ("--release", "release"),
}


@dataclass(frozen=True, slots=True)
class SmoothQuant:
    """How SmoothQuant moves the range of activations into weights.

    Args:
        alpha: How much of it moves, 0 to 1.
        per_channel: One scale for each output channel of a weight instead of one for the tensor.
        per_token: Activations get a scale for each token at run time instead of a fixed one.
    """

    alpha: float = 0.5
    per_channel: bool = True
    per_token: bool = True


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """How to convert.

    Args:
        dtype: Type of the float tensors: float16, bfloat16, float32, or auto: the source's, but float16 for float32.
        precision: One of `PRECISIONS`, for the weights; None: the float type.
        tp: Ranks that share each layer (tensor parallel).
        pp: Ranks that share the stack of layers (pipeline parallel).
        embedding_sharding: Whether tensor-parallel ranks share the embedding: not at all (``none``), by token
            (``vocab``) or by dimension (``hidden``).
        kv_cache: Number format of the KV cache: auto (that of the weights), int8 or fp8.
        group_size: Input channels that share a scale (int4_awq).
        smoothquant: Settings of int8_smoothquant.
        activation_ranges: File with the activation ranges or scales that fp8, int8_smoothquant and the scaled KV
            caches need.
        release: TensorRT-LLM release that will read the checkpoint.
    """

    dtype: str = AUTO
    precision: str | None = None
    tp: int = 1
    pp: int = 1
    embedding_sharding: str = "none"
    kv_cache: str = AUTO
    group_size: int = 128
    smoothquant: SmoothQuant = SmoothQuant()
    activation_ranges: Path | None = None
    release: str = DEFAULT_RELEASE

    def __post_init__(self) -> None:
        wrong = [
            f"{name}={value!r}"
            for name, value, known in (
                ("dtype", self.dtype, (AUTO, *FLOAT_TYPES)),
                ("precision", self.precision, (None, *PRECISIONS)),
                ("embedding_sharding", self.embedding_sharding, SHARDINGS),
                ("kv_cache", self.kv_cache, KV_CACHES),
                ("group_size", self.group_size, GROUP_SIZES),
            )
            if value not in known
        ]
        wrong += [f"{name}={value}" for name, value in (("tp", self.tp), ("pp", self.pp)) if value < 1]
        if self.precision in FLOAT_TYPES and self.dtype not in (AUTO, self.precision):
            wrong.append(f"dtype={self.dtype!r} with precision={self.precision!r}")
        if wrong:
            raise UsageBug(f"ConvertOptions({', '.join(wrong)})")

    @property
    def float_type(self) -> str:
        """The float type asked for, by `dtype` or by a precision that is one; else auto."""
        return self.precision if self.precision in FLOAT_TYPES and self.precision else self.dtype

    @property
    def is_quantised(self) -> bool:
        """Whether weights or KV cache are anything but floats."""
        return self.precision in QUANTISED or self.kv_cache != AUTO


DEFAULTS = ConvertOptions()
