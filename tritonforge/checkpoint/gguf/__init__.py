"""From a GGUF file of a Llama model to a Hugging Face folder."""

from tritonforge.checkpoint.gguf.importer import import_gguf

__all__ = ["import_gguf"]
