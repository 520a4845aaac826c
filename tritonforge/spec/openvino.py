"""The embedded engine's block of a version: ``kind: openvino``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tritonforge.spec.base import Count, ForgeModel, Tokens

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
