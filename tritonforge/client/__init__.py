"""Talks to any Triton or KServe v2 server; usable without the rest of the package.

`Client` is the way in; the other names are what it takes and gives. Errors are the `ClientError` branch of
`tritonforge.errors`.
"""

from tritonforge.client.sync import Client
from tritonforge.client.types import (
    Chunk,
    Completion,
    GenerateOptions,
    InferResult,
    ModelConfig,
    ModelInfo,
    ModelStatistics,
    ServerInfo,
    TensorInfo,
)

__all__ = [
    "Chunk",
    "Client",
    "Completion",
    "GenerateOptions",
    "InferResult",
    "ModelConfig",
    "ModelInfo",
    "ModelStatistics",
    "ServerInfo",
    "TensorInfo",
]
