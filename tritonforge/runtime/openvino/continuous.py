"""The engine for many requests at a time: in-flight batching over a paged KV cache."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import openvino
import openvino_genai

from .engine import Exchange, device_properties
from .prefix_guard import shares_open_block
from .protocol import Generation, Update
from .reasons import reason_of
from .sampling import generation_config
from .settings import EngineSettings
from .stops import end_of_stop

FINISH_NAMES = {"STOP": "stop", "LENGTH": "length"}


@dataclass(slots=True)
class _Running:
    """A request inside the pipeline."""

    generation: Generation
    handle: openvino_genai.GenerationHandle
    answer: list[int] = field(default_factory=list)


class ContinuousEngine:
    """Every step computes one token of each running request, and pieces of new prompts beside them.

    Requests beyond `max_batch_size` wait here: the library would take them all at once.

    Args:
        folder: Version folder with openvino_model.xml.
        settings: Its engine.json.
    """

    def __init__(self, folder: Path, settings: EngineSettings) -> None:
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = 0  # in whole GB there; blocks say it exactly
        scheduler.num_kv_blocks = settings.kv_cache_blocks
        scheduler.max_num_batched_tokens = settings.max_num_batched_tokens
        scheduler.enable_prefix_caching = settings.enable_prefix_caching
        self._settings = settings
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(
            str(folder), scheduler, "CPU", device_properties(settings)
        )
        self._waiting: deque[tuple[int, Generation]] = deque()
        self._running: dict[int, _Running] = {}
        self._news: list[Update] = []

    @property
    def busy(self) -> bool:
        """Whether there is something to compute or to report."""
        return bool(self._news or self._waiting or self._running) or self._pipeline.has_non_finished_requests()

    def submit(self, key: int, generation: Generation) -> None:
        """Take a request; it starts when fewer than `max_batch_size` run."""
        self._waiting.append((key, generation))

    def cancel(self, key: int) -> None:
        """Stop a request, running or waiting. The pipeline frees its cache within two steps."""
        running = self._running.pop(key, None)
        if running is not None:
            running.handle.cancel()
        elif any(waiting == key for waiting, _ in self._waiting):
            self._waiting = deque(item for item in self._waiting if item[0] != key)
        else:
            return
        self._news.append(Update(key, finish="cancelled"))

    def step(self, exchange: Exchange) -> None:
        """Compute the next token of every running request."""
        self._admit()
        if self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        updates, self._news = self._news, []
        for key, running in list(self._running.items()):
            update = self._update(key, running)
            if update is None:
                continue
            updates.append(update)
            if update.final:
                del self._running[key]
        exchange(updates)

    def _admit(self) -> None:
        kept: deque[tuple[int, Generation]] = deque()
        while self._waiting and len(self._running) < self._settings.max_batch_size:
            key, generation = self._waiting.popleft()
            if self._must_wait(generation):
                kept.append((key, generation))
                continue
            prompt = openvino.Tensor(np.array([generation.input_ids], dtype=np.int64))
            try:
                handle = self._pipeline.add_request(key, prompt, generation_config(generation))
            except RuntimeError as error:  # the library refused it before it touched the running ones
                self._news.append(Update(key, error=f"the engine refused the request: {reason_of(error)}"))
                continue
            self._running[key] = _Running(generation, handle)
        self._waiting.extendleft(reversed(kept))

    def _must_wait(self, new: Generation) -> bool:
        """Whether a request would be answered wrongly beside one that runs; it gets its turn when that one is done."""
        return self._settings.enable_prefix_caching and any(
            shares_open_block(
                running.generation.input_ids, running.answer, new.input_ids, block_tokens=self._settings.block_tokens
            )
            for running in self._running.values()
        )

    def _update(self, key: int, running: _Running) -> Update | None:
        """What the last step brought for one request."""
        ids: list[int] = []
        log_probs: list[float] = []
        score = 0.0
        finish = None
        while running.handle.can_read():
            for output in running.handle.read().values():  # one sequence per request
                ids.extend(output.generated_ids)
                log_probs.extend(output.generated_log_probs)
                score = output.score
                finish = FINISH_NAMES.get(output.finish_reason.name, finish)
        if not ids:
            return self._without_tokens(key, running)
        wants_log_probs = running.generation.log_probs
        running.answer.extend(ids)
        if running.generation.stop_sequences:
            end = end_of_stop(running.answer, len(ids), running.generation)
            if end is not None:
                surplus = len(running.answer) - end
                ids, log_probs = ids[: len(ids) - surplus], log_probs[: len(log_probs) - surplus]
                running.handle.stop()
                finish = "stop"
        return Update(key, ids, log_probs if wants_log_probs else (), score if wants_log_probs else 0.0, finish)

    def _without_tokens(self, key: int, running: _Running) -> Update | None:
        status = running.handle.get_status()
        if status == openvino_genai.GenerationStatus.RUNNING:
            return None
        if status == openvino_genai.GenerationStatus.IGNORED:
            return Update(
                key,
                error=f"the KV cache holds {self._settings.kv_cache_tokens} tokens, too few for this request; "
                f"build the engine with more runtime.kv_cache_gib or ask for fewer tokens",
            )
        return Update(key, finish="stop")
