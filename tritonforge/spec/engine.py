"""Which engine computes the tokens, and how it is compiled. The kinds are told apart by ``kind``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tritonforge.spec.openvino import OpenVinoEngineSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

EngineSpec = Annotated[OpenVinoEngineSpec | TensorRtLlmEngineSpec, Field(discriminator="kind")]
