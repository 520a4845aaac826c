"""From a model repository to a running Triton server."""
