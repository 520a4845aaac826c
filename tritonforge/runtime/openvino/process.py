"""The worker process as its model sees it: start, send, read, end."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from .protocol import FrameReader, Message, encode

READ_BYTES = 1 << 20
PACKAGE = Path(__file__).parents[1]  # the folder that holds this package and the gateway's, whatever it is called

# Started by a command line, not by multiprocessing: the model runs inside Triton's stub, whose main module a spawned
# process could not import. The package's folder comes last on the path, so that nothing beside it hides a library.
BOOT = f"""
import sys
sys.path.append(sys.argv[1])
from {PACKAGE.name}.openvino.worker import main
sys.exit(main(sys.argv[2], int(sys.argv[3])))
"""


class WorkerProcess:
    """A running worker. The thread that makes it must live as long: the kernel ends the worker with that thread.

    Args:
        folder: Version folder of the engine.
    """

    def __init__(self, folder: Path) -> None:
        # -B and -P: leave no bytecode in the version folder, import nothing from the server's working directory.
        argv = [sys.executable, "-B", "-P", "-c", BOOT, str(PACKAGE.parent), str(folder), str(os.getpid())]
        self._child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._commands = self._child.stdin.fileno()
        self._events = self._child.stdout.fileno()
        self._frames = FrameReader()
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="worker-commands", daemon=True)
        self._writer.start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._child.pid

    def fileno(self) -> int:
        """File descriptor that becomes readable when there is something to receive."""
        return self._events

    def send(self, messages: Sequence[Message]) -> None:
        """Queue one frame; never waits, also when the worker is in a long step and its pipe is full."""
        self._outgoing.put(encode(messages))

    def receive(self) -> list[Message] | None:
        """The messages that have come; None when the worker has ended."""
        data = os.read(self._events, READ_BYTES)
        return self._frames.feed(data) if data else None

    def end(self, grace_s: float) -> int:
        """Ask the worker to end, kill it when `grace_s` passes; returns its exit code, negative for a signal."""
        self._outgoing.put(None)
        try:
            returncode = self._child.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            returncode = self._child.wait()
        self._writer.join()
        assert self._child.stdout is not None
        self._child.stdout.close()
        return returncode

    def _write(self) -> None:
        """Top of the writing thread. Closing the pipe is what tells the worker to end."""
        assert self._child.stdin is not None
        with self._child.stdin:
            while (frame := self._outgoing.get()) is not None:
                try:
                    _write_all(self._commands, frame)
                except BrokenPipeError:
                    return  # the worker has ended; the reading side finds out


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
