"""Which engine computes the tokens, and how it is compiled. The kinds are told apart by ``kind``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tritonforge.spec.llmapi import LlmApiEngineSpec
from tritonforge.spec.openvino import OpenVinoEngineSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec
from tritonforge.spec.vllm import VllmEngineSpec

EngineSpec = Annotated[
    OpenVinoEngineSpec | TensorRtLlmEngineSpec | VllmEngineSpec | LlmApiEngineSpec, Field(discriminator="kind")
]
# Kinds that are given text and answer with text, and that serve the checkpoint as it is.
TextEngineSpec = VllmEngineSpec | LlmApiEngineSpec
