"""Runs trtllm-build in the release's container."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docker.errors import APIError, DockerException, ImageNotFound

from tritonforge.engine.tensorrt_llm.command import BuildCommand
from tritonforge.engine.tensorrt_llm.container import EngineTraits, container_options
from tritonforge.engine.tensorrt_llm.docker_engine import TOOLKIT_HINT, Connection, connected, lack_of_gpus, refusals
from tritonforge.engine.tensorrt_llm.orphans import OWNER_LABEL, remove_orphans
from tritonforge.engine.tensorrt_llm.output import Lines, failed, prepare_log
from tritonforge.engine.tensorrt_llm.pull import pull_image
from tritonforge.engine.writing import naming
from tritonforge.errors import ContainerError, UsageBug
from tritonforge.events import OnEvent
from tritonforge.launch.owner import owner_label

_NAMES_TRIED = 5
_CONFLICT = 409
_GONE = (404, 409)  # it was never made, or somebody is removing it
_ENDING_S = 60  # between the end of the output and the exit code


class DockerExecutor:
    """Runs a build command in a container of its image.

    Args:
        address: Address of the Docker Engine; None takes DOCKER_HOST, or what `docker context` has chosen.
        pull: Whether to download an image that is not there. They have many gigabytes, so nobody is surprised by one.
    """

    def __init__(self, *, address: str | None = None, pull: bool = False) -> None:
        self._address = address
        self._pull = pull

    def prepare(self, image: str | None, *, on_event: OnEvent) -> None:
        """See whether the engine answers and has the image; see `Executor`."""
        with connected(self._address) as engine:
            _require_image(engine, _named(image), pull=self._pull, on_event=on_event)
            _warn_of_gpus(engine, on_event)

    def run(self, command: BuildCommand, *, log: Path, on_event: OnEvent) -> None:
        """Run the command; see `Executor`."""
        image = _named(command.image)
        with connected(self._address) as engine:
            with refusals("list its containers", engine):
                remove_orphans(engine.client, on_event)
            _require_image(engine, image, pull=self._pull, on_event=on_event)
            prepare_log(log)
            with _container(engine, command, on_event) as container:
                on_event(f"running {command.argv[0]} in {image} as container {container.name}")
                code, out_of_memory = _follow(engine, container, log, on_event)
        if code != 0:
            raise failed(command, returncode=code, log=log, out_of_memory=out_of_memory)


def _named(image: str | None) -> str:
    if image is None:
        raise UsageBug("a command without an image was given to the executor of containers")
    return image


def _warn_of_gpus(engine: Connection, on_event: OnEvent) -> None:
    """Tell of an engine that shows no way to GPUs. No refusal: some set-ups give them without showing it."""
    with contextlib.suppress(ContainerError), refusals("say what it can do", engine):
        lack = lack_of_gpus(engine.client.info())
        if lack is not None:
            on_event(f"warning: {lack}; the build may fail at its start, after the conversion: {TOOLKIT_HINT}")


def _require_image(engine: Connection, image: str, *, pull: bool, on_event: OnEvent) -> None:
    with refusals(f"look for the image {image}", engine):
        try:
            engine.client.images.get(image)
        except ImageNotFound as error:
            if not pull:
                raise ContainerError(
                    f"the image {image} is not on the Docker Engine at {engine.address}",
                    hint=f"docker pull {image}, or tritonforge build --pull; it may have tens of gigabytes",
                ) from error
        else:
            return
    pull_image(engine, image, on_event=on_event)


@contextlib.contextmanager
def _container(engine: Connection, command: BuildCommand, on_event: OnEvent) -> Iterator[Any]:
    """A container that is there for the block. It has a name before it is made, so that no interruption loses it."""
    with refusals("say what it can do", engine):
        traits = EngineTraits.from_security_options(engine.client.info().get("SecurityOptions") or ())
    for _ in range(_NAMES_TRIED):
        name = f"tritonforge-build-{secrets.token_hex(4)}"
        options = container_options(command, traits, name=name, labels={OWNER_LABEL: owner_label()})
        taken = False
        try:
            with refusals("create a container", engine):
                try:
                    container = engine.client.containers.create(**options)
                except APIError as error:
                    taken = error.status_code == _CONFLICT
                    if taken:
                        continue
                    raise
            yield container
        finally:
            if not taken:
                _remove(engine, name, on_event)
        return
    raise ContainerError(f"the Docker Engine at {engine.address} has containers of {_NAMES_TRIED} random names already")


def _remove(engine: Connection, name: str, on_event: OnEvent) -> None:
    """End and remove a container. There is nothing that it could save, so it is not asked first."""
    try:
        engine.client.api.remove_container(name, force=True, v=True)
    except (DockerException, OSError) as error:
        if getattr(error, "status_code", None) not in _GONE:
            on_event(f"the container {name} could not be removed ({error}); remove it: docker rm -f {name}")


def _follow(engine: Connection, container: Any, log: Path, on_event: OnEvent) -> tuple[int, bool]:
    """Run a container that was made; returns its exit code, and whether it was killed for its memory."""
    lines = Lines()
    with _attached(engine, container) as output:
        with refusals("start the container", engine):
            container.start()
        with naming(log):
            file = log.open("wb")
        with file:
            while chunk := _next(engine, output):
                with naming(log):
                    file.write(chunk)
                    file.flush()
                for line in lines.feed(chunk):
                    on_event(line)
    for line in lines.rest():
        on_event(line)
    with refusals("wait for the end of the container", engine):
        code = int(container.wait(timeout=_ENDING_S)["StatusCode"])
        container.reload()
    return code, bool(container.attrs["State"].get("OOMKilled"))


@contextlib.contextmanager
def _attached(engine: Connection, container: Any) -> Iterator[Iterator[bytes]]:
    """What a container writes, from its start if that comes afterwards, whatever the engine does with logs."""
    with refusals("attach to the container", engine):
        stream = container.attach(stream=True, stdout=True, stderr=True)
    try:
        yield iter(stream)
    finally:
        stream._response.close()  # the SDK's own close leaves the socket to the garbage collector


def _next(engine: Connection, output: Iterator[bytes]) -> bytes:
    with refusals("read the container's output", engine):
        return next(output, b"")
