"""Who started a program: a label for what goes on when its tritonforge is killed, and the end of such programs.

SIGKILL cannot be answered, so a killed build leaves its program, which may go on for hours and hold a GPU. The program
and all that it starts carry their owner in the environment, where the next build finds it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tritonforge.launch.process import process_start

OWNER_VARIABLE = "TRITONFORGE_OWNER"
_PARTS = 4
_ENDING_S = 5.0  # a process that waits for its GPU or its disk ends a little later
_LOOK_EVERY_S = 0.02


def owner_label(pid: int | None = None) -> str:
    """Names a process for ever: this boot of the machine, the process's namespace, its id, and when it was started."""
    pid = os.getpid() if pid is None else pid
    return ":".join([*_place(), str(pid), str(process_start(pid))])


def is_orphan(owner: str) -> bool:
    """Whether an owner has died. Owners of other machines and other containers are not ours to judge."""
    parts = owner.split(":")
    if len(parts) != _PARTS or parts[:2] != _place() or not parts[2].isdecimal():
        return False
    return str(process_start(int(parts[2]))) != parts[3]


def owned() -> Mapping[str, str]:
    """The variable by which a program that is started now, and all that it starts, is known to be ours."""
    return {OWNER_VARIABLE: owner_label()}


def end_orphans() -> tuple[int, ...]:
    """Kill what programs of dead owners have left on this machine, and wait a little for its end.

    Returns:
        The ids of the processes. Those of other users are neither seen nor killed.
    """
    found = [int(process.name) for process in Path("/proc").glob("[0-9]*") if _is_left_over(process)]
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    deadline_s = time.monotonic() + _ENDING_S
    while any(process_start(pid) is not None for pid in found) and time.monotonic() < deadline_s:
        time.sleep(_LOOK_EVERY_S)
    return tuple(found)


def _is_left_over(process: Path) -> bool:
    if process.name == str(os.getpid()):
        return False
    try:
        variables = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False  # it has ended, or is somebody else's
    start = f"{OWNER_VARIABLE}=".encode()
    owner = next((text.removeprefix(start) for text in variables if text.startswith(start)), None)
    return owner is not None and is_orphan(os.fsdecode(owner))


def _place() -> list[str]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return [boot, Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")]
