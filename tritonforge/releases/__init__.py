"""What each TensorRT-LLM release is and takes, as data: containers, options of trtllm-build, evidence for each."""
