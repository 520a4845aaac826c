"""The search for stop sequences in an answer that grows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .protocol import Generation


def end_of_stop(answer: Sequence[int], new_tokens: int, generation: Generation) -> int | None:
    """Where the answer ends because a stop sequence was completed by one of its last `new_tokens` tokens.

    Returns:
        Number of tokens up to and with the sequence, or None when there is none.
    """
    first_end = max(len(answer) - new_tokens + 1, generation.min_new_tokens)
    for end in range(first_end, len(answer) + 1):
        for sequence in generation.stop_sequences:
            if len(sequence) <= end and list(answer[end - len(sequence) : end]) == list(sequence):
                return end
    return None
