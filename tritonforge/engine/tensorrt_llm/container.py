"""How a build command becomes a container: what the container engine is asked to create. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from docker.types import DeviceRequest, Mount, Ulimit

from tritonforge.engine.tensorrt_llm.command import BuildCommand, Gpus

# What NVIDIA's images ask for at their start. They also ask for unlimited locked memory, which is for what is sent to
# other machines, and which an engine inside a container may not give.
_STACK_BYTES = 64 * 1024**2

# An engine carries standard output and standard error apart, and what came first is lost: the reason of a failure would
# lie somewhere before the last lines.
_ONE_STREAM = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")


@dataclass(frozen=True, slots=True)
class EngineTraits:
    """What matters about a container engine when files are shared with its containers.

    Args:
        rootless: It runs as an ordinary user, whom its containers see as root.
        maps_users: It maps the ids of its containers' users to others, unless told not to.
        labels_files: It lets containers touch only files of their own label (SELinux), unless told not to.
    """

    rootless: bool = False
    maps_users: bool = False
    labels_files: bool = False

    @classmethod
    def from_security_options(cls, options: Sequence[str]) -> EngineTraits:
        """From the engine's own list, for example ``["name=seccomp,profile=default", "name=rootless"]``."""
        names = {option.partition(",")[0].removeprefix("name=") for option in options}
        return cls(rootless="rootless" in names, maps_users="userns" in names, labels_files="selinux" in names)


def container_options(
    command: BuildCommand, traits: EngineTraits, *, name: str, labels: Mapping[str, str]
) -> dict[str, object]:
    """The arguments of `docker.models.containers.ContainerCollection.create`.

    The image's entrypoint stays: NVIDIA's images find the libraries that fit the driver there.

    Args:
        command: What to run; it has an image.
        traits: The engine that is to run it.
        name: Name of the container.
        labels: Its labels.
    """
    options: dict[str, object] = {
        "image": command.image,
        "command": [*_ONE_STREAM, *command.argv],
        "name": name,
        "labels": dict(labels),
        "user": "0:0" if traits.rootless else command.user,
        "environment": dict(command.env),
        "working_dir": command.cwd,
        # As mounts, not as volumes: a folder that is not there is an error then, and not made on the way, for root.
        "mounts": [Mount(one.container, str(one.host), "bind", read_only=one.read_only) for one in command.mounts],
        "shm_size": command.shm_bytes,
        "device_requests": _device_requests(command.gpus),
    }
    if not traits.rootless:  # an ordinary user may not raise it
        options["ulimits"] = [Ulimit(name="stack", soft=_STACK_BYTES, hard=_STACK_BYTES)]
    if traits.maps_users:
        options["userns_mode"] = "host"
    if traits.labels_files:
        options["security_opt"] = ["label=disable"]
    return options


def _device_requests(gpus: Gpus) -> list[DeviceRequest]:
    if gpus is None:
        return []
    if gpus == "all":
        return [DeviceRequest(count=-1, capabilities=[["gpu"]])]
    return [DeviceRequest(device_ids=[str(gpu) for gpu in gpus], capabilities=[["gpu"]])]
