"""The engine for graphs with attention written out: one request at a time over the cache inside the graph.

It exists so that the effect of the fused attention can be measured with everything else equal.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import openvino
import openvino_genai

from .engine import Exchange, device_properties
from .protocol import Generation, Update
from .sampling import generation_config
from .settings import EngineSettings
from .stops import end_of_stop


class StatefulEngine:
    """Serves requests in the order in which they came; `max_batch_size` does not matter to it.

    Args:
        folder: Version folder with openvino_model.xml.
        settings: Its engine.json.
    """

    def __init__(self, folder: Path, settings: EngineSettings) -> None:
        self._pipeline = openvino_genai.LLMPipeline(
            str(folder), "CPU", ATTENTION_BACKEND="SDPA", **device_properties(settings)
        )
        self._waiting: deque[tuple[int, Generation]] = deque()
        self._news: list[Update] = []
        self._current: _TokenStream | None = None

    @property
    def busy(self) -> bool:
        """Whether there is something to compute or to report."""
        return bool(self._news or self._waiting)

    def submit(self, key: int, generation: Generation) -> None:
        """Take a request; it starts when the ones before it have ended."""
        self._waiting.append((key, generation))

    def cancel(self, key: int) -> None:
        """Stop a request, running or waiting."""
        if self._current is not None and self._current.key == key:
            self._current.finish = "cancelled"
        elif any(waiting == key for waiting, _ in self._waiting):
            self._waiting = deque(item for item in self._waiting if item[0] != key)
            self._news.append(Update(key, finish="cancelled"))

    def step(self, exchange: Exchange) -> None:
        """Compute one whole request, with an exchange after each of its tokens."""
        updates, self._news = self._news, []
        exchange(updates)
        if not self._waiting:
            return
        key, generation = self._waiting.popleft()
        stream = self._current = _TokenStream(key, generation, exchange)
        prompt = openvino.Tensor(np.array([generation.input_ids], dtype=np.int64))
        result = self._pipeline.generate(prompt, generation_config(generation), stream)
        self._current = None
        stopped = result.finish_reasons[0] == openvino_genai.GenerationFinishReason.STOP
        exchange([Update(key, finish=stream.finish or ("stop" if stopped else "length"))])


class _TokenStream(openvino_genai.StreamerBase):  # type: ignore[misc] # the library ships no types
    """Sends each token on as the library makes it, and tells the library when to stop."""

    def __init__(self, key: int, generation: Generation, exchange: Exchange) -> None:
        super().__init__()
        self.key = key
        self.finish: str | None = None
        self._generation = generation
        self._exchange = exchange
        self._answer: list[int] = []

    def write(self, tokens: int | list[int]) -> openvino_genai.StreamingStatus:
        """Called by the library with the newest token or tokens."""
        ids = [tokens] if isinstance(tokens, int) else list(tokens)
        self._answer.extend(ids)
        end = end_of_stop(self._answer, len(ids), self._generation)
        if end is not None:
            del ids[len(ids) - (len(self._answer) - end) :]
            self.finish = "stop"
        self._exchange([Update(self.key, ids)])
        if self.finish is None:
            return openvino_genai.StreamingStatus.RUNNING
        return openvino_genai.StreamingStatus.CANCEL

    def end(self) -> None:
        """Called by the library after the last token."""
