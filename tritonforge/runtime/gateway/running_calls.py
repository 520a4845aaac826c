"""The calls under way, by engine model: which of them fail with their engine, and which engines are silent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from .engine import Ended, EngineCall, Failure, Mailbox


@dataclass(slots=True)
class _Model:
    calls: dict[asyncio.Task[None], tuple[EngineCall, Mailbox]] = field(default_factory=dict)
    heard_s: float = 0.0


class RunningCalls:
    """Holds every call from its start to its end."""

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}

    def __bool__(self) -> bool:
        return bool(self._models)

    def add(self, call: EngineCall, mailbox: Mailbox, task: asyncio.Task[None]) -> None:
        """Keep a call until its task is done; its events end then, too."""
        model = self._models.setdefault(call.engine_model, _Model(heard_s=time.monotonic()))
        model.calls[task] = (call, mailbox)
        task.add_done_callback(lambda done: self._remove(call.engine_model, done))

    def heard_of(self, engine_model: str) -> None:
        """Note that the engine has just sent something."""
        model = self._models.get(engine_model)
        if model is not None:
            model.heard_s = time.monotonic()

    def silent(self, silence_s: float) -> Iterator[EngineCall]:
        """One call of every engine model that has sent nothing for so long."""
        for model in list(self._models.values()):
            if time.monotonic() - model.heard_s >= silence_s:
                yield next(iter(model.calls.values()))[0]

    def fail_all(self, engine_model: str, reason: str) -> None:
        """End all calls of an engine model, other than the one whose task is running."""
        model = self._models.get(engine_model)
        for task, (_, mailbox) in list(model.calls.items()) if model is not None else ():
            if task is not asyncio.current_task():
                mailbox.put(Failure(reason))
                task.cancel()

    def cancel(self, call: EngineCall) -> None:
        """End a call's task, and with it its events; does nothing for one that has ended."""
        model = self._models.get(call.engine_model)
        for task, (running, _) in list(model.calls.items()) if model is not None else ():
            if running.request_id == call.request_id:
                task.cancel()

    def _remove(self, engine_model: str, task: asyncio.Task[None]) -> None:
        model = self._models[engine_model]
        _, mailbox = model.calls.pop(task)
        # Here and not in the task, which may be cancelled before it has begun.
        mailbox.put(Ended())
        if not model.calls:
            del self._models[engine_model]
