"""All requests of one model, in one event loop of their own thread. No Triton here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

from .requests import Generation

_CLOSE_PATIENCE_S = 10.0
_log = logging.getLogger(__name__)


class Reply(Protocol):
    """The way back to one client. All methods but `is_gone` are called in the session's thread."""

    def send(self, completion: Any, *, final: bool) -> None:
        """Send what the engine has; `completion` is the library's CompletionOutput."""

    def fail(self, reason: str) -> None:
        """Send an error; nothing may follow."""

    def cancel(self) -> None:
        """Say that the request was cancelled; nothing may follow."""

    def is_gone(self) -> bool:
        """Whether the client has cancelled or disconnected. Called in a thread of its own: asking takes its time."""


class Session:
    """Runs generations.

    Args:
        llm: The library's LLM.
        sampling_params: Makes the library's sampling parameters.
        check_period_s: Seconds between two looks at whether clients are still there.
    """

    def __init__(self, llm: Any, sampling_params: Callable[..., Any], *, check_period_s: float) -> None:
        self._llm = llm
        self._sampling_params = sampling_params
        self._check_period_s = check_period_s
        self._running: dict[asyncio.Task[None], tuple[Reply, Any]] = {}
        self._loop = asyncio.new_event_loop()
        self._watch: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="llmapi", daemon=True)
        self._thread.start()

    def submit(self, generation: Generation, reply: Reply) -> None:
        """Begin a generation; its reply is answered from the session's thread."""
        self._loop.call_soon_threadsafe(self._begin, generation, reply)

    def close(self) -> None:
        """End what is running, then the engine. Triton calls for this when no request is under way."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(_CLOSE_PATIENCE_S)
        shutdown = getattr(self._llm, "shutdown", None)
        if shutdown is not None:
            shutdown()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def _stop(self) -> None:
        for task in (*self._running, *([] if self._watch is None else [self._watch])):
            task.cancel()
        # One turn later, so that cancelled tasks have said so to their clients.
        self._loop.call_soon(self._loop.call_soon, self._loop.stop)

    def _begin(self, generation: Generation, reply: Reply) -> None:
        task = self._loop.create_task(self._answer(generation, reply))
        self._running[task] = (reply, None)
        task.add_done_callback(lambda done: self._running.pop(done, None))
        if self._watch is None or self._watch.done():
            self._watch = self._loop.create_task(self._look_for_clients())

    async def _answer(self, generation: Generation, reply: Reply) -> None:
        try:
            result = self._llm.generate_async(
                generation.prompt,
                sampling_params=self._sampling_params(**generation.sampling),
                streaming=generation.streaming,
            )
            task = asyncio.current_task()
            assert task is not None  # this is a task's own code
            self._running[task] = (reply, result)
            await _pass_on(result, reply, streaming=generation.streaming)
        except asyncio.CancelledError:
            reply.cancel()
        except Exception as error:  # noqa: BLE001 - whatever it is, no client may be left waiting for an answer
            _log.warning("a generation failed", exc_info=True)
            reply.fail(f"{type(error).__name__}: {error}")

    async def _look_for_clients(self) -> None:
        while self._running:
            await asyncio.sleep(self._check_period_s)
            asked = [(task, reply) for task, (reply, _) in self._running.items()]
            for task in await self._loop.run_in_executor(None, _tasks_without_client, asked):
                _, result = self._running.get(task, (None, None))
                abort = getattr(result, "abort", None)
                if abort is not None:
                    abort()
                task.cancel()


def _tasks_without_client(asked: list[tuple[asyncio.Task[None], Reply]]) -> list[asyncio.Task[None]]:
    return [task for task, reply in asked if reply.is_gone()]


async def _pass_on(result: Any, reply: Reply, *, streaming: bool) -> None:
    last = None
    async for output in result:
        last = output
        if output.finished:
            break
        if streaming:
            reply.send(output.outputs[0], final=False)
    if last is None:
        reply.fail("the engine ended the request without an answer and without a reason")
    else:
        reply.send(last.outputs[0], final=True)
