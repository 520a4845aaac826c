"""From a TensorRT-LLM checkpoint to a compiled engine."""
