"""The worker process: owns the pipeline, reads commands from its standard input, writes updates to its standard output.

The pipeline lives in a process of its own because a step of it keeps Python's interpreter lock for as long as it takes,
which would stall the intake, the streaming and the cancelling of requests in the model, and because a crash of the
library then takes no Triton process with it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from .engine import Engine
from .load import load_engine
from .protocol import Broken, Cancel, FrameReader, Message, Ready, Submit, Update, encode
from .reasons import reason_of
from .settings import EngineSettings

READ_BYTES = 1 << 20
PR_SET_PDEATHSIG = 1  # from Linux's sys/prctl.h


class ParentGone(Exception):
    """The model has closed its end of the pipe."""


class Channel:
    """Both directions of the pipe to the model.

    Args:
        commands: File descriptor to read from.
        events: File descriptor to write to.
    """

    def __init__(self, commands: int, events: int) -> None:
        self._commands = commands
        self._events = events
        self._frames = FrameReader()

    def receive(self, *, wait: bool) -> list[Message]:
        """The commands that have come; with `wait`, at least some bytes of one. Raises ParentGone at the end."""
        if not wait and not select.select([self._commands], [], [], 0)[0]:
            return []
        data = os.read(self._commands, READ_BYTES)
        if not data:
            raise ParentGone
        return self._frames.feed(data)

    def send(self, messages: Sequence[Message]) -> None:
        """Write one frame; waits while the model does not read. Raises ParentGone."""
        rest = memoryview(encode(messages))
        try:
            while rest:
                rest = rest[os.write(self._events, rest) :]
        except BrokenPipeError as error:
            raise ParentGone from error


def main(folder: str, parent_pid: int) -> int:
    """Serve the engine of a version folder until the model goes away.

    Args:
        folder: Version folder with engine.json and the graph.
        parent_pid: Process id of the model; the worker ends with it.

    Returns:
        Exit code: 0 after a clean end, 1 when the engine could not be loaded or broke.
    """
    _end_with_parent(parent_pid)
    channel = _take_standard_streams()
    try:
        begun = time.monotonic()
        engine = load_engine(Path(folder), EngineSettings.read(Path(folder)))
        channel.send([Ready(load_s=time.monotonic() - begun)])
        serve(engine, channel)
    except ParentGone:
        return 0
    except Exception as error:  # noqa: BLE001 - top of the process: whatever it was, the model must learn of it
        channel.send([Broken(reason_of(error))])
        return 1


def serve(engine: Engine, channel: Channel) -> NoReturn:
    """Pass commands to the engine and its updates back, until ParentGone or an exception of the engine."""

    def exchange(updates: Sequence[Update]) -> None:
        if updates:
            channel.send(updates)
        _obey(engine, channel.receive(wait=False))

    while True:
        if engine.busy:
            engine.step(exchange)
        else:
            _obey(engine, channel.receive(wait=True))


def _obey(engine: Engine, commands: Sequence[Message]) -> None:
    for command in commands:
        if isinstance(command, Submit):
            engine.submit(command.key, command.generation)
        elif isinstance(command, Cancel):
            engine.cancel(command.key)


def _end_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when the model's process dies in whatever way."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it died before the call
        sys.exit(1)


def _take_standard_streams() -> Channel:
    """Use standard input and output as the pipe; what libraries print goes to standard error, the server's log."""
    events = os.dup(1)
    os.dup2(2, 1)
    return Channel(commands=0, events=events)
