"""A real Docker Engine for tests: one of our own where that is possible, else one that runs already."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException

from tests.support.standin_image import FOLDER, image_tar
from tritonforge.engine.tensorrt_llm.docker_engine import GPU_HOOK
from tritonforge.launch.command import Command
from tritonforge.launch.process import Process

START_S = 30.0


@dataclass
class DockerEngine:
    """A running engine.

    Args:
        address: Its address.
        gives_gpus: Whether it takes requests for GPUs; containers see none all the same.
        images: The stand-in images that it has, by release.
    """

    address: str
    gives_gpus: bool
    images: dict[str, str] = field(default_factory=dict)

    def client(self) -> docker.DockerClient:
        """A new connection."""
        return docker.DockerClient(base_url=self.address, version="auto", timeout=60)

    def standin(self, release: str) -> str:
        """Name of an image whose trtllm-build stands for that of a release."""
        if release not in self.images:
            name = f"tritonforge-standin:{release}"
            with contextlib.closing(self.client()) as client:
                repository, tag = name.split(":")
                client.api.import_image_from_data(
                    image_tar(release), repository=repository, tag=tag, changes=[f"ENV PATH={FOLDER}"]
                )
            self.images[release] = name
        return self.images[release]

    def containers(self) -> list[str]:
        """Names of the containers that our builds have left, running or not."""
        with contextlib.closing(self.client()) as client:
            found = client.containers.list(all=True, filters={"label": "tritonforge.owner"})
            return [container.name for container in found]


@contextlib.contextmanager
def usable_engine() -> Iterator[DockerEngine]:
    """A Docker Engine for the block; skips where there is none and none can be started."""
    with own_engine() if can_start() else running_engine() as engine:
        yield engine


def can_start() -> bool:
    """Whether an engine of our own can be started."""
    return os.getuid() == 0 and shutil.which("dockerd") is not None


@contextlib.contextmanager
def own_engine(*, gives_gpus: bool = True) -> Iterator[DockerEngine]:
    """An engine of our own, in namespaces of its own: when it is killed, all that it has started ends with it."""
    # Not pytest's folder: the path of a socket may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="tf-docker-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        if gives_gpus:
            hook = folder / "bin" / GPU_HOOK
            hook.write_text("#!/bin/sh\ncat >/dev/null\n")  # the engine runs it for each container; it does nothing
            hook.chmod(0o755)
        address = f"unix://{folder}/s"
        argv = (
            *(
                "setpriv",
                "--pdeathsig",
                "KILL",
                "unshare",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount",
                "--mount-proc",
            ),
            *("dockerd", "--iptables=false", "--bridge=none", "--storage-driver=vfs", "--host", address),
            *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"),
        )
        env = {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
        with Process(Command(argv, env=env), log=folder / "log", grace_s=0.1) as process:
            _await(address, process)
            engine = DockerEngine(address, gives_gpus)
            try:
                yield engine
            finally:
                with contextlib.suppress(DockerException, OSError), contextlib.closing(engine.client()) as client:
                    for container in client.containers.list(all=True):
                        container.remove(force=True)


@contextlib.contextmanager
def running_engine() -> Iterator[DockerEngine]:
    """The engine of this machine. Only our images are removed at the end."""
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    engine = DockerEngine(address, gives_gpus=False)
    try:
        client = engine.client()
    except (DockerException, OSError) as error:
        pytest.skip(f"no Docker Engine: none can be started (that takes root and dockerd), none runs ({error})")
    with contextlib.closing(client):
        try:
            yield engine
        finally:
            for image in engine.images.values():
                client.images.remove(image, force=True)


def _await(address: str, process: Process) -> None:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s and process.returncode() is None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as knocking:
            knocking.connect(address.removeprefix("unix://"))
            return
        time.sleep(0.05)
    pytest.skip(f"dockerd does not start here: {' | '.join(process.tail(3))}")
