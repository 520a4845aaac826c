"""Containers whose tritonforge has died: each carries its owner as a label, and the next build removes them.

A process that is killed with SIGKILL cannot end its container, which would go on for hours and hold a GPU.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from docker.errors import APIError

from tritonforge.events import OnEvent
from tritonforge.launch.process import process_start

OWNER_LABEL = "tritonforge.owner"
_PARTS = 4


def owner_label(pid: int | None = None) -> str:
    """Names a process for ever: this boot of the machine, the process's namespace, its id, and when it was started."""
    pid = os.getpid() if pid is None else pid
    return ":".join([*_place(), str(pid), str(process_start(pid))])


def is_orphan(owner: str) -> bool:
    """Whether a container's owner has died. Owners of other machines and other containers are not ours to judge."""
    parts = owner.split(":")
    if len(parts) != _PARTS or parts[:2] != _place() or not parts[2].isdecimal():
        return False
    return str(process_start(int(parts[2]))) != parts[3]


def remove_orphans(engine: Any, on_event: OnEvent) -> None:
    """Remove what builds have left whose tritonforge has died.

    Args:
        engine: A client of the container engine.
        on_event: Called with a line for each container.
    """
    for container in engine.containers.list(all=True, filters={"label": OWNER_LABEL}, ignore_removed=True):
        if is_orphan(container.labels.get(OWNER_LABEL, "")):
            with contextlib.suppress(APIError):  # somebody else removes it at the same time
                container.remove(force=True, v=True)
                on_event(f"removed the container {container.name} of a build whose tritonforge has died")


def _place() -> list[str]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return [boot, Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")]
