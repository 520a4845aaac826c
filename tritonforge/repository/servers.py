"""Which servers the versions of one model need: each container of Triton has one TensorRT-LLM, or vLLM. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tritonforge.repository.manifest import Manifest


def server_of(kind: str, release: str | None) -> str | None:
    """What a server must have to run a kind of engine; None when any server does, or that is not known.

    Args:
        kind: Kind of the engine.
        release: TensorRT-LLM release; None for engines of no release.
    """
    if kind == "vllm":
        return "vLLM"
    return f"TensorRT-LLM {release}" if kind in ("tensorrt_llm", "llmapi") and release is not None else None


def servers_of(manifests: Mapping[int, Manifest]) -> dict[int, str | None]:
    """What the server of each published version must have; see `server_of`."""
    return {number: server_of(manifest.kind, manifest.release) for number, manifest in manifests.items()}


def several_servers(servers: Mapping[int, str | None]) -> str | None:
    """A sentence about versions that no server can load together; None when one can load them all.

    Args:
        servers: What the server of each version must have.
    """
    numbers: dict[str, list[int]] = {}
    for number, server in sorted(servers.items()):
        if server is not None:
            numbers.setdefault(server, []).append(number)
    if len(numbers) < 2:
        return None
    needs = (f"version {', '.join(map(str, found))} needs {server}" for server, found in numbers.items())
    return f"no server can load these together: {'; '.join(needs)}"
