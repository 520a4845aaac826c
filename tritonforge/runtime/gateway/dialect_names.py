"""The dialects that engines speak, by the names that serving.json gives them. Pure."""

from __future__ import annotations

TENSORRT_LLM = "tensorrt_llm"
"""Token ids in and out, with the tensors of NVIDIA's `tensorrtllm` backend."""
VLLM = "vllm"
"""Text in and out, with the tensors of Triton's `vllm` backend."""
LLMAPI = "llmapi"
"""Text in and out, with the tensors of upstream's Triton model on TensorRT-LLM's LLM API."""

ALL = (LLMAPI, TENSORRT_LLM, VLLM)
TAKE_TEXT = frozenset({LLMAPI, VLLM})
