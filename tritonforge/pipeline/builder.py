"""What compiles an engine of kind tensorrt_llm, as far as it can be known before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonforge.engine.tensorrt_llm.command import image_of
from tritonforge.engine.tensorrt_llm.local import Installed, find_program, installed
from tritonforge.errors import BuildError, ToolMissing
from tritonforge.pipeline.machine import Machine
from tritonforge.releases.table import all_releases, find_release
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec


@dataclass(frozen=True, slots=True)
class Builder:
    """What compiles an engine.

    Args:
        key: What of it decides the engine: equal ones mean the same compiler.
        tools: Names of what compiles by kind, for the manifest: ``tensorrt_llm``, and ``tensorrt`` and ``image`` where
            they are known.
    """

    key: Mapping[str, str]
    tools: Mapping[str, str]


def builder_of(spec: TensorRtLlmEngineSpec, machine: Machine) -> Builder:
    """What compiles the engine of a spec here: an image, or what is installed. Starts no build.

    Args:
        spec: The engine.
        machine: This machine.
    """
    release = find_release(spec.release)
    if spec.executor == "local":
        found = _installed() or Installed(release.name, None)  # without one the build refuses, unless it is cached
        key = {"builder": "local", "tensorrt_llm": found.tensorrt_llm, "tensorrt": found.tensorrt or machine.unknown}
        return Builder(key, _tools(found.tensorrt_llm, found.tensorrt, None))
    image = image_of(spec)
    key = {"builder": spec.image or f"TensorRT {release.container.tensorrt}"}
    return Builder(key, _tools(release.name, _tensorrt_of(image), image))


def _installed() -> Installed | None:
    try:
        return installed(find_program())
    except (ToolMissing, BuildError):
        return None  # said when it is needed: what the cache has needs none


def _tensorrt_of(image: str | None) -> str | None:
    """TensorRT of a container of the release table; None for images of others."""
    containers = (container for release in all_releases() for container in release.containers)
    return next((container.tensorrt for container in containers if container.image == image), None)


def _tools(tensorrt_llm: str, tensorrt: str | None, image: str | None) -> dict[str, str]:
    named = {"tensorrt_llm": tensorrt_llm, "tensorrt": tensorrt, "image": image}
    return {name: value for name, value in named.items() if value is not None}
