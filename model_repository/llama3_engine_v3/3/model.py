"""Entry point of the engine in Triton's Python backend; the code is in the package beside this file."""

from .tritonforge_runtime.llmapi.model import TritonPythonModel

__all__ = ["TritonPythonModel"]
