"""From a Hugging Face folder (or a GGUF file) to a TensorRT-LLM checkpoint."""
