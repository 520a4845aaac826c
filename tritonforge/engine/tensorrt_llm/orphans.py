"""Containers whose tritonforge has died: each carries its owner as a label, and the next build removes them.

A process that is killed with SIGKILL cannot end its container, which would go on for hours and hold a GPU.
"""

from __future__ import annotations

import contextlib
from typing import Any

from docker.errors import APIError

from tritonforge.events import OnEvent
from tritonforge.launch.owner import is_orphan

OWNER_LABEL = "tritonforge.owner"


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
