"""Which requests may not run at the same time while prefixes of prompts are cached. Pure.

OpenVINO GenAI 2026.4 finds the blocks of a new prompt by their content, and among them the last, partly filled one of
a running request. That request goes on writing into the block, and the new one reads what it wrote: its answer is made
of the wrong tokens. It happens when one prompt begins with the whole of the other and both end in the same block. Equal
prompts, prompts that part earlier, and prompts that end in different blocks are safe (tried with lengths of 4 to 150).
"""

from __future__ import annotations

from collections.abc import Sequence


def shares_open_block(running: Sequence[int], answer: Sequence[int], new: Sequence[int], *, block_tokens: int) -> bool:
    """Whether a new prompt would be served from a block that a running request still fills.

    Args:
        running: Token ids of the running request's prompt.
        answer: Token ids of its answer so far.
        new: Token ids of the new prompt.
        block_tokens: Tokens in a block of the KV cache.
    """
    if len(new) <= len(running) or list(new[: len(running)]) != list(running):
        return False
    common = len(running) + _common(answer, new[len(running) :])
    return common // block_tokens == len(new) // block_tokens


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the beginning that two sequences share."""
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return index
    return min(len(left), len(right))
