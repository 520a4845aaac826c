"""What Triton can do in front of an engine that takes text, and what it cannot. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tritonforge.spec.engine import EngineSpec
from tritonforge.spec.llmapi import LlmApiEngineSpec
from tritonforge.spec.serving import ServingSpec
from tritonforge.spec.vllm import VllmEngineSpec


def broken_text_serving(engine: EngineSpec, serving: ServingSpec) -> Iterator[tuple[str, str]]:
    """Keys of the serving settings that do not go with a text engine, each with what is wrong; none for others."""
    if not isinstance(engine, VllmEngineSpec | LlmApiEngineSpec):
        return
    if serving.dynamic_batching is not None:
        # Their models have max_batch_size 0, with which Triton refuses a batcher.
        yield (
            "dynamic_batching",
            f"is given, but kind {engine.kind} takes one request at a time and batches by itself; expected "
            f"dynamic_batching: null for it",
        )
    placed = [group for group in serving.instance_group if group.kind == "KIND_GPU"]
    copies = sum(group.count for group in serving.instance_group if group not in placed)
    if isinstance(engine, LlmApiEngineSpec) and placed:
        yield "instance_group", "is KIND_GPU; expected KIND_CPU: the engine takes its GPUs by itself"
    elif isinstance(engine, VllmEngineSpec) and placed and engine.world_size > 1:
        yield (
            "instance_group",
            f"is KIND_GPU, which gives a copy one GPU, and the engine takes {engine.world_size}; expected KIND_MODEL",
        )
    if copies > 1:
        yield "instance_group", f"has {copies} copies; expected 1: each copy would load the model onto the same GPUs"
