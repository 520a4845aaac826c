"""The way to the Docker Engine, and what its refusals mean."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import docker
from docker.context import ContextAPI
from docker.errors import APIError, DockerException

from tritonforge.errors import ContainerError

# Making a container from an image of 20 GB can take this long where layers are copied.
_ANSWER_S = 600
_KNOCK_S = 10.0
_UNIX = "unix://"
# The program of the NVIDIA Container Toolkit by which an engine finds that it can give containers GPUs.
GPU_HOOK = "nvidia-container-runtime-hook"
_CDI_GPU = "nvidia.com/gpu"  # devices of the Container Device Interface, as engines from 28 on list them
TOOLKIT_HINT = (
    "install the NVIDIA Container Toolkit, then: sudo nvidia-ctk runtime configure --runtime=docker && "
    "sudo systemctl restart docker"
)
# What the engine says → what it means, and what to do.
_REFUSALS = (
    ("could not select device driver", "it cannot give a container GPUs: it has no NVIDIA runtime", TOOLKIT_HINT),
    ("unsatisfied condition", "the image needs a newer NVIDIA driver", "update the driver, or take an older release"),
    ("unknown device", "it does not have the GPUs asked for", "compare engine.gpus with the output of nvidia-smi"),
    ("nvidia-container-cli", "it cannot give a container GPUs", "see whether nvidia-smi works on this machine"),
    ("executable file not found", "the image has no such program", "set engine.image to one that has trtllm-build"),
    (
        "bind source path does not exist",
        "it does not see this machine's folders",
        "use an engine on this machine, or share the folder with it (DOCKER_HOST and docker context say which it is)",
    ),
    ("no space left on device", "its disk is full", "free some: docker system df, docker system prune"),
)


@dataclass(frozen=True, slots=True)
class Connection:
    """An open connection.

    Args:
        client: The SDK's client.
        address: Address of the engine, for messages.
    """

    client: Any
    address: str


@contextlib.contextmanager
def connected(address: str | None = None) -> Iterator[Connection]:
    """A connection to the Docker Engine.

    Args:
        address: Its address; None takes DOCKER_HOST, or what `docker context` has chosen.

    Raises:
        ContainerError: No engine answers there.
    """
    options = {"base_url": address} if address is not None else _configured()
    address = str(options.get("base_url", ""))
    try:
        _knock(address)
        client = docker.DockerClient(**options, version="auto", timeout=_ANSWER_S)
    except (DockerException, OSError) as error:
        raise _unreachable(address, error) from error
    try:
        yield Connection(client, address)
    finally:
        client.close()


@contextlib.contextmanager
def refusals(doing: str, connection: Connection, *, hint: str | None = None) -> Iterator[None]:
    """Turn what the engine refuses within the block into an error that says what it means.

    Args:
        doing: What is being done, for the message, for example ``start the container``.
        connection: The engine.
        hint: What to do about a refusal that is not a known one.

    Raises:
        ContainerError: The engine refuses, or has gone.
    """
    try:
        yield
    except (DockerException, OSError) as error:
        raise _refusal(doing, connection.address, error, hint) from error


def lack_of_gpus(found: Mapping[str, Any]) -> str | None:
    """Why an engine may be unable to give containers GPUs, by what it shows; None when it shows a way.

    Args:
        found: What the engine says of itself (`docker info`).
    """
    runtimes = sorted(found.get("Runtimes") or {})
    devices = [str(device.get("ID", "")) for device in found.get("DiscoveredDevices") or ()]
    if "nvidia" in runtimes or any(name.startswith(_CDI_GPU) for name in devices) or shutil.which(GPU_HOOK) is not None:
        return None
    return f"the Docker Engine has no nvidia runtime ({', '.join(runtimes)})"


def _refusal(doing: str, address: str, error: Exception, other_hint: str | None) -> ContainerError:
    said = str(getattr(error, "explanation", None) or error).strip()
    for fragment, meaning, hint in _REFUSALS:
        if fragment in said:
            return ContainerError(f"the Docker Engine at {address} could not {doing}: {meaning} ({said})", hint=hint)
    if isinstance(error, OSError) and not isinstance(error, APIError):  # the SDK's own errors of the connection
        return ContainerError(
            f"the Docker Engine at {address} went away while it was to {doing}: {said}",
            hint="see whether it still runs: docker info",
        )
    return ContainerError(f"the Docker Engine at {address} could not {doing}: {said}", hint=other_hint)


def _configured() -> dict[str, object]:
    """As the docker command finds its engine: by DOCKER_HOST, or by the chosen context."""
    options: dict[str, object] = docker.utils.kwargs_from_env()
    if "base_url" in options:
        return options
    context = ContextAPI.get_current_context()
    return {"base_url": context.Host, "tls": context.TLSConfig or False}


def _knock(address: str) -> None:
    """Find out why nobody answers at a socket of this machine; the SDK's error has the reason as text only."""
    if address.startswith(_UNIX):
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(_KNOCK_S)
            knocking.connect(address.removeprefix(_UNIX))


def _unreachable(address: str, error: Exception) -> ContainerError:
    where = f"the Docker Engine at {address}"
    if isinstance(error, PermissionError):
        hint = "join the group docker and log in again: sudo usermod -aG docker $USER"
        return ContainerError(f"{where} may not be used by this user", hint=hint)
    start = "start Docker (sudo systemctl start docker), set DOCKER_HOST, or use engine.executor: local"
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return ContainerError(f"{where} does not run, or Docker is not installed", hint=start)
    return ContainerError(f"{where} does not answer: {error}", hint=start)
