"""Quantised tensors of a TensorRT-LLM checkpoint: which there are, and how their values come about."""
