"""The two Python models of NVIDIA's ensemble, around an engine with the tensors of the `tensorrtllm` backend."""
