"""The scale of an int8 or fp8 KV cache: one number for each layer, of keys and values together."""

from __future__ import annotations

from functools import partial

import numpy as np

from tritonforge.checkpoint.jobs import AnyJob, FullTensor, Job
from tritonforge.checkpoint.quantize.fp8 import LARGEST as LARGEST_FP8
from tritonforge.checkpoint.quantize.int8 import LARGEST as LARGEST_INT8
from tritonforge.checkpoint.quantize.linears import QKV, Linear, linears_of
from tritonforge.checkpoint.quantize.ranges import ActivationRanges
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.formats.safetensors import Array

INT8 = "int8"
FP8 = "fp8"
_LARGEST = {INT8: LARGEST_INT8, FP8: LARGEST_FP8}


def kv_cache_jobs(source: SourceCheckpoint, kind: str, ranges: ActivationRanges | None) -> list[AnyJob]:
    """One scale for each layer: the largest output of query, key and value over the largest number of the cache.

    Args:
        source: The checkpoint.
        kind: `INT8` or `FP8`.
        ranges: Outputs of query, key and value; None (fp8 only) makes every scale 1, as upstream's converter does.
    """
    return [
        Job((_tensor(linear.layer),), partial(_scale, linear, kind, ranges), working_bytes=4)
        for linear in linears_of(source)
        if linear.place == QKV
    ]


def _tensor(layer: int) -> FullTensor:
    return FullTensor(f"transformer.layers.{layer}.attention.kv_cache_scaling_factor", "F32", (1,), layer=layer)


def _scale(linear: Linear, kind: str, ranges: ActivationRanges | None) -> tuple[Array]:
    if ranges is None:
        return (np.ones(1, np.float32),)
    return (np.full(1, ranges.largest_output(linear.modules) / np.float32(_LARGEST[kind]), np.float32),)
