"""From a Hugging Face Llama or ChatGLM checkpoint to a Triton server that answers, and on to its next version.

Importing this package loads nothing else: the client is `tritonforge.client`, the stages are in the packages that
docs/architecture.md names, and the command line is `tritonforge.cli`.
"""

__version__ = "0.1.0"
