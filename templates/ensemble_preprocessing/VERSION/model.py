"""Entry point of the ensemble's preprocessing in Triton's Python backend; its code is in the package beside it."""

from .tritonforge_runtime.ensemble.preprocessing_model import TritonPythonModel

__all__ = ["TritonPythonModel"]
