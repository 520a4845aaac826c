"""Follow a streamed answer to its end, with the times at which its pieces came."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from tritonforge.client.text import completion
from tritonforge.client.types import Chunk, Completion


def follow(chunks: Iterable[Chunk], *, on_chunk: Callable[[Chunk], None] | None = None) -> Completion:
    """The whole answer that a stream makes up.

    Args:
        chunks: A stream that has not begun: its request is sent when the first piece is asked for, which is when the
            clock starts.
        on_chunk: Called with every piece when it has come.
    """
    start_s = time.perf_counter()
    arrivals = []
    for chunk in chunks:
        arrivals.append((chunk, time.perf_counter()))
        if on_chunk is not None:
            on_chunk(chunk)
    return completion(arrivals, start_s=start_s, end_s=time.perf_counter())
