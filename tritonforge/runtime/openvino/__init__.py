"""The token-level model over OpenVINO GenAI's continuous batching."""
