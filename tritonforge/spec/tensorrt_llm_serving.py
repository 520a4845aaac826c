"""What Triton can do in front of an engine of the `tensorrtllm` backend, and what it cannot. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tritonforge.releases.backend import backend_line, where_queue_policy_exists
from tritonforge.releases.table import find_release
from tritonforge.spec.engine import EngineSpec
from tritonforge.spec.serving import ServingSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec


def broken_tensorrt_llm_serving(engine: EngineSpec, serving: ServingSpec) -> Iterator[tuple[str, str]]:
    """Keys of the serving settings that do not go with the backend, each with what is wrong; none for other kinds."""
    if not isinstance(engine, TensorRtLlmEngineSpec):
        return
    batching = serving.dynamic_batching
    line = backend_line(find_release(engine.release))
    if batching is not None and batching.default_queue_policy is not None and not line.has_queue_policy:
        yield (
            "dynamic_batching",
            f"has a default_queue_policy, which the backend of TensorRT-LLM {engine.release} does not have; expected "
            f"none, or a release of {where_queue_policy_exists()}",
        )
