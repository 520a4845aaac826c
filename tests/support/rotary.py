"""Rotary scaling as config.json has it."""

from __future__ import annotations


def llama3_scaling(*, original: int = 8192) -> dict[str, object]:
    """Llama 3.1's scaling; `original` is the length in tokens of the first training."""
    return {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": original,
    }
