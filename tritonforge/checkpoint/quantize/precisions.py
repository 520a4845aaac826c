"""What precisions are called: in forge.yaml, and in TensorRT-LLM."""

from __future__ import annotations

from collections.abc import Mapping

from tritonforge.checkpoint.options import SmoothQuant

INT8_WEIGHTS = "int8_weight_only"
INT4_WEIGHTS = "int4_weight_only"
INT4_AWQ = "int4_awq"
SMOOTHQUANT = "int8_smoothquant"
FP8 = "fp8"
READS_RANGES = (INT4_AWQ, SMOOTHQUANT, FP8)  # what uses a file of activation ranges, or needs one
_ALGORITHMS: Mapping[str, str] = {INT8_WEIGHTS: "W8A16", INT4_WEIGHTS: "W4A16", INT4_AWQ: "W4A16_AWQ", FP8: "FP8"}
_KV_ALGORITHMS: Mapping[str, str] = {"int8": "INT8", "fp8": "FP8"}


def weight_algorithm(precision: str | None, smoothquant: SmoothQuant) -> str | None:
    """TensorRT-LLM's name of a precision; None for floats.

    Args:
        precision: As in forge.yaml.
        smoothquant: Decides between the variants of SmoothQuant.
    """
    if precision != SMOOTHQUANT:
        return _ALGORITHMS.get(precision or "")
    channel = "CHANNEL" if smoothquant.per_channel else "TENSOR"
    # Without a scale per channel upstream has one name for static scales, and another one with scales per token.
    if smoothquant.per_token:
        return f"W8A8_SQ_PER_{channel}_PER_TOKEN_PLUGIN"
    return "W8A8_SQ_PER_CHANNEL_PER_TENSOR_PLUGIN" if smoothquant.per_channel else "W8A8_SQ_PER_TENSOR_PLUGIN"


def kv_cache_algorithm(kind: str) -> str | None:
    """TensorRT-LLM's name of a KV cache's number format; None for that of the weights."""
    return _KV_ALGORITHMS.get(kind)
