"""The thread between the model and its worker: hands out updates, passes on cancellations, replaces a dead worker."""

from __future__ import annotations

import select
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from .process import WorkerProcess
from .protocol import Broken, Cancel, Generation, Message, Ready, Submit, Update, merge

CANCEL_POLL_S = 0.2  # asking Triton whether a client has gone costs a message between processes
END_GRACE_S = 2.0
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


class EngineDown(RuntimeError):
    """The worker is not running; the message says why."""


class Listener(Protocol):
    """Who waits for the updates of one request."""

    @property
    def request_id(self) -> str:
        """The client's name for the request; may be empty and need not be unique."""
        ...

    def update(self, update: Update) -> None:
        """Take news. The last one is final."""
        ...

    def is_cancelled(self) -> bool:
        """Whether the client has gone."""
        ...


class Dispatcher:
    """Owns the worker process and all requests that are under way in it.

    A worker that dies takes its requests with it: each gets an error that says so. A new one is started at once, or
    after a growing pause when the last one did not even load; requests that come during the pause are refused with the
    reason.

    Args:
        folder: Version folder of the engine.
        log: Takes one line for the server's log.
    """

    def __init__(self, folder: Path, *, log: Callable[[str], None]) -> None:
        self._folder = folder
        self._log = log
        self._lock = threading.Lock()  # guards the four below: a held key always belongs to the current worker
        self._worker: WorkerProcess | None = None
        self._held: dict[int, Listener] = {}
        self._last_key = 0
        self._down_reason = "the engine has not been started"
        self._loaded = False
        self._last_words = ""  # why the current worker is about to end
        self._pause_s = FIRST_PAUSE_S
        self._settled = threading.Event()  # the first load has ended, well or not
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="worker-updates", daemon=True)

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker, if there is one."""
        with self._lock:
            return None if self._worker is None else self._worker.pid

    def start(self, *, deadline_s: float) -> None:
        """Start the worker and wait until it has loaded the engine.

        Raises:
            EngineDown: It could not load, or not in time.
        """
        self._thread.start()
        in_time = self._settled.wait(deadline_s)
        if not self._loaded:
            reason = self._down_reason if in_time else f"the engine was not loaded after {deadline_s:g} s"
            self.close()
            raise EngineDown(reason)

    def submit(self, generation: Generation, listener: Listener) -> None:
        """Begin a request; never waits for the worker. Raises EngineDown."""
        with self._lock:
            if self._worker is None:
                raise EngineDown(self._down_reason)
            self._last_key += 1
            self._held[self._last_key] = listener
            self._worker.send([Submit(self._last_key, generation)])

    def cancel(self, request_id: str) -> int:
        """Cancel the requests of that id; returns how many there were."""
        return self._cancel_where(lambda listener: listener.request_id == request_id)

    def close(self) -> None:
        """End the worker, within seconds."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        """Top of the thread, which also starts every worker: a worker ends with the thread that started it."""
        reason = "the server is closing this model"
        try:
            self._serve()
        except Exception as error:  # noqa: BLE001 - top of a thread: requests must not wait for a thread that is gone
            reason = f"the engine's dispatcher failed: {type(error).__name__}: {error}"
            self._log(reason)
        worker = self._release(reason, next_worker=None)
        if worker is not None:
            worker.end(END_GRACE_S)
        self._settled.set()

    def _serve(self) -> None:
        next_poll_s = 0.0
        while not self._closing.is_set():
            worker = self._worker
            if worker is None:
                worker = WorkerProcess(self._folder)
                with self._lock:
                    self._worker = worker
            if select.select([worker], [], [], CANCEL_POLL_S)[0]:
                messages = worker.receive()
                if messages is None:
                    self._replace(worker)
                    continue
                self._take(messages)
            if time.monotonic() >= next_poll_s:
                self._cancel_where(lambda listener: listener.is_cancelled())
                next_poll_s = time.monotonic() + CANCEL_POLL_S

    def _take(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if isinstance(message, Ready):
                self._log(f"engine loaded in {message.load_s:.1f} s")
                self._loaded = True
                self._pause_s = FIRST_PAUSE_S
                self._settled.set()
            elif isinstance(message, Broken):
                self._last_words = message.reason
        for update in merge(message for message in messages if isinstance(message, Update)):
            with self._lock:
                listener = self._held.pop(update.key, None) if update.final else self._held.get(update.key)
            if listener is not None:
                self._tell(listener, update)

    def _tell(self, listener: Listener, update: Update) -> None:
        try:
            listener.update(update)
        except Exception as error:  # noqa: BLE001 - one request's trouble must not reach the others
            self._log(f"request {listener.request_id!r}: {type(error).__name__}: {error}")
            if not update.final:
                self._cancel_where(lambda held: held is listener)

    def _replace(self, worker: WorkerProcess) -> None:
        """Bury a worker that has ended and see to the next one."""
        returncode = worker.end(END_GRACE_S)
        was_loaded, self._loaded = self._loaded, False
        last_words, self._last_words = self._last_words, ""
        reason = f"the engine's worker process failed: {last_words or _manner_of_end(returncode)}"
        self._log(f"{reason}; starting another")
        if was_loaded:
            self._release(reason, next_worker=WorkerProcess(self._folder))
            return
        self._release(reason, next_worker=None)
        self._settled.set()
        self._closing.wait(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _release(self, reason: str, *, next_worker: WorkerProcess | None) -> WorkerProcess | None:
        """Put another worker in force and fail the requests of the one before, which is returned."""
        with self._lock:
            worker, self._worker = self._worker, next_worker
            held, self._held = self._held, {}
            self._down_reason = reason
        for key, listener in held.items():
            self._tell(listener, Update(key, error=reason))
        return worker

    def _cancel_where(self, condition: Callable[[Listener], bool]) -> int:
        """Ask the worker to stop the requests that meet a condition. Each still ends with a final update."""
        with self._lock:
            held = list(self._held.items())
        keys = [key for key, listener in held if condition(listener)]
        with self._lock:
            if keys and self._worker is not None:
                self._worker.send([Cancel(key) for key in keys])
        return len(keys)


def _manner_of_end(returncode: int) -> str:
    if returncode < 0:
        return f"it was ended by signal {-returncode} ({signal.strsignal(-returncode)})"
    return f"it ended with exit code {returncode}"
