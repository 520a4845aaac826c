"""Engine calls through Triton's own request interface for models (BLS). Needs Triton's Python backend.

Two facts of Triton 2.51 shape this file. `async_exec` waits for an engine's first response in the event loop's default
executor, which has six threads on two cores: the seventh request would wait for somebody else's first token. And the
iterator that it gives blocks. So this engine brings its own executor, large enough for every call, and moves responses
from the iterator to the mailbox in one of its threads. Plain threads that call `exec` crash the server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import triton_python_backend_utils as pb_utils

from . import dialect
from .engine import Ended, EngineCall, Failure, Mailbox

_log = logging.getLogger(__name__)


class BlsEngine:
    """Runs engine calls on other models of the same server.

    Args:
        most_active: Calls at the same time. Each takes one thread, and its stop another one; threads are started when
            they are needed.
    """

    def __init__(self, most_active: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=2 * most_active, thread_name_prefix="engine-call")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, call: EngineCall, mailbox: Mailbox) -> None:
        """Send the call; its events come to the mailbox until `Ended`."""
        task = asyncio.ensure_future(self._run(call, mailbox))
        # The loop keeps only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def send_stop(self, stop: EngineCall) -> None:
        """Send a call that stops another one, and wait for its answer."""
        mailbox = Mailbox()
        await self._run(stop, mailbox)
        for event in await mailbox.read():
            if isinstance(event, Failure):
                _log.info("engine model %s on stopping %s: %s", stop.engine_model, stop.request_id, event.reason)

    def close(self) -> None:
        """End the threads; waits for calls that still run."""
        self._pool.shutdown()

    async def _run(self, call: EngineCall, mailbox: Mailbox) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            loop.set_default_executor(self._pool)
            self._loop = loop
        try:
            responses = await _triton_request(call).async_exec(decoupled=True)
            await loop.run_in_executor(self._pool, _forward, responses, mailbox)
        except Exception as error:  # noqa: BLE001 (top of a task: whatever it is, the request must end)
            mailbox.put(Failure(str(error)))
        finally:
            mailbox.put(Ended())


def _triton_request(call: EngineCall) -> Any:
    return pb_utils.InferenceRequest(
        model_name=call.engine_model,
        model_version=call.engine_version,
        request_id=call.request_id,
        inputs=[pb_utils.Tensor(name, array) for name, array in call.inputs.items()],
        requested_output_names=list(call.outputs),
    )


def _forward(responses: Iterator[Any], mailbox: Mailbox) -> None:
    """Move responses to the mailbox as plain values, so that Triton's shared memory is free again at once."""
    for response in responses:
        if response.has_error():
            # Its error code is lost on the way: Triton 2.51 calls every error of a model INTERNAL here.
            mailbox.put(Failure(response.error().message()))
            continue
        tokens = dialect.read_tokens({tensor.name(): tensor.as_numpy() for tensor in response.output_tensors()})
        if tokens is not None:
            mailbox.put(tokens)
