"""Entry point of the gateway in Triton's Python backend; the code is in the package beside this file."""

from .tritonforge_runtime.gateway.model import TritonPythonModel

__all__ = ["TritonPythonModel"]
