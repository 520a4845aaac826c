"""Which server serves a repository: a small file beside it, written when the server is ready and removed at its end."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tritonforge.errors import ServerError
from tritonforge.launch.process import process_start
from tritonforge.places import forge_folder
from tritonforge.server.options import ServerAddress

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class ServerState:
    """A running server as its state file tells it.

    Args:
        address: Where it answers.
        pid: Its process id.
        started_ticks: When the process started, in clock ticks since boot (field 22 of /proc/PID/stat). Process ids are
            used again; with the start time they name one process.
        log: Its log file.
    """

    address: ServerAddress
    pid: int
    started_ticks: int
    log: Path


def state_file(repository: Path) -> Path:
    """Path of the state file."""
    return forge_folder(repository) / "server.json"


def write_state(repository: Path, state: ServerState) -> None:
    """Write the state file at once: a reader sees the old one or the new one.

    Raises:
        ServerError: It cannot be written.
    """
    path = state_file(repository)
    content = {
        "schema_version": SCHEMA_VERSION,
        "address": asdict(state.address),
        "pid": state.pid,
        "started_ticks": state.started_ticks,
        "log": str(state.log),
    }
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise ServerError(f"{path}: {error.strerror}", hint="the repository's folder must be writable") from error


def remove_state(repository: Path, *, pid: int) -> None:
    """Remove the state file if it is about the server with that process id."""
    state = _read(state_file(repository))
    if state is not None and state.pid == pid:
        with contextlib.suppress(OSError):
            state_file(repository).unlink()


def running_state(repository: Path) -> ServerState | None:
    """The server that serves the repository now, or None. A file left behind by a crash counts as none."""
    state = _read(state_file(repository))
    if state is None or process_start(state.pid) != state.started_ticks:
        return None
    return state


def running_server(repository: Path) -> ServerAddress | None:
    """Address of the server that serves the repository now, or None."""
    state = running_state(repository)
    return None if state is None else state.address


def _read(path: Path) -> ServerState | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        address = ServerAddress(**{name: content["address"][name] for name in ServerAddress.__slots__})
        return ServerState(address, int(content["pid"]), int(content["started_ticks"]), Path(content["log"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # no file, or not one of ours: then nothing is known to run
