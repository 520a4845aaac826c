"""TensorRT-LLM's LLM API as a model of Triton's Python backend: text in, text out."""
