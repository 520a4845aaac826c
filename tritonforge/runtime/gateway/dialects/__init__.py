"""How the gateway speaks to each kind of engine: one module per dialect."""

from __future__ import annotations

from collections.abc import Mapping

from . import llmapi, tensorrt_llm, vllm
from .base import Dialect

DIALECTS: Mapping[str, Dialect] = {module.NAME: module for module in (tensorrt_llm, vllm, llmapi)}

__all__ = ["DIALECTS", "Dialect"]
