"""Entry point of the ensemble's postprocessing in Triton's Python backend; its code is in the package beside it."""

from .tritonforge_runtime.ensemble.postprocessing_model import TritonPythonModel

__all__ = ["TritonPythonModel"]
