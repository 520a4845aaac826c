"""File formats that several stages read or write: safetensors and the TensorRT-LLM checkpoint configuration."""
