"""What this machine has for building TensorRT-LLM engines. None of it is needed for other engines."""

from __future__ import annotations

from typing import Any

from tritonforge.checks import INFO, OK, Check
from tritonforge.engine.tensorrt_llm.docker_engine import TOOLKIT_HINT, connected, lack_of_gpus, refusals
from tritonforge.engine.tensorrt_llm.local import find_program, installed_version
from tritonforge.errors import BuildError, ToolMissing

DOCKER, RUNTIME = "docker", "nvidia runtime"


def examine_builders(*, docker_address: str | None = None, search_path: str | None = None) -> list[Check]:
    """Look for the Docker Engine, its way to GPUs, and trtllm-build.

    Args:
        docker_address: Address of the engine; None takes the one that builds would take.
        search_path: Folders in which to look for trtllm-build; None takes PATH.
    """
    return [*_docker(docker_address), _program(search_path)]


def _docker(address: str | None) -> list[Check]:
    try:
        with connected(address) as engine, refusals("say what it can do", engine):
            found = engine.client.info()
            where = f"{found.get('ServerVersion', 'unknown version')} at {engine.address}"
    except BuildError as error:
        return [Check(DOCKER, INFO, error.message, f"to build TensorRT-LLM engines in containers: {error.hint or ''}")]
    return [Check(DOCKER, OK, where), _runtime(found)]


def _runtime(found: dict[str, Any]) -> Check:
    detail = lack_of_gpus(found)
    if detail is None:
        return Check(RUNTIME, OK, "containers can be given GPUs")
    return Check(RUNTIME, INFO, detail, f"to build TensorRT-LLM engines in containers: {TOOLKIT_HINT}")


def _program(search_path: str | None) -> Check:
    try:
        program = find_program(search_path)
    except ToolMissing as error:
        return Check("trtllm-build", INFO, "not on PATH", f"to build with executor: local: {error.hint}")
    try:
        return Check("trtllm-build", OK, f"{installed_version(program)} at {program}")
    except BuildError as error:
        return Check("trtllm-build", INFO, error.message, f"to build with executor: local: {error.hint or ''}")
