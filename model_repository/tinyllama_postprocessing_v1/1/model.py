"""Entry point of the ensemble's postprocessing in Triton's Python backend; the code is in the package beside this file."""

from .tritonforge_runtime.ensemble.postprocessing_model import TritonPythonModel

__all__ = ["TritonPythonModel"]
