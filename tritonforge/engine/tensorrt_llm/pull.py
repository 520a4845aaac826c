"""Downloads an image that a build needs, and tells how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docker.utils import parse_repository_tag

from tritonforge.engine.tensorrt_llm.docker_engine import Connection, refusals
from tritonforge.errors import ContainerError
from tritonforge.events import OnEvent

GIB_BYTES = 2**30
_TELL_EVERY_BYTES = GIB_BYTES // 2


def pull_image(engine: Connection, image: str, *, on_event: OnEvent) -> None:
    """Download an image.

    Args:
        engine: The engine that is to have it.
        image: Its name, with a tag or digest; without either, ``latest``.
        on_event: Called with a line for every half GiB.

    Raises:
        ContainerError: The registry does not have it, refuses, or is not reached.
    """
    repository, tag = parse_repository_tag(image)
    on_event(f"pulling {image}")
    progress = PullProgress()
    hint = (
        f"see what this says: docker pull {image}; a private registry needs docker login, and engine.image names an "
        f"image from elsewhere"
    )
    with refusals(f"pull the image {image}", engine, hint=hint):
        for event in engine.client.api.pull(repository, tag=tag or "latest", stream=True, decode=True):
            if "error" in event:  # the answer had begun: it cannot be a status any more
                raise ContainerError(
                    f"the Docker Engine at {engine.address} could not pull the image {image}: {event['error']}",
                    hint=hint,
                )
            for line in progress.lines(event):
                on_event(line)


class PullProgress:
    """Sums up what an engine says of the layers of an image."""

    def __init__(self) -> None:
        self._layers: dict[str, int] = {}
        self._told_bytes = 0

    def lines(self, event: Mapping[str, Any]) -> list[str]:
        """What is worth telling after an event of the engine: a line, or none."""
        if event.get("status") != "Downloading":
            return []
        self._layers[str(event.get("id"))] = int((event.get("progressDetail") or {}).get("current") or 0)
        done_bytes = sum(self._layers.values())
        if done_bytes < self._told_bytes + _TELL_EVERY_BYTES:
            return []
        self._told_bytes = done_bytes
        return [f"downloaded {done_bytes / GIB_BYTES:.1f} GiB"]
