"""From engines to a Triton model repository: render, lint, publish."""
