"""TensorRT-LLM engines: the command that builds one, who runs it, and what came of it."""
