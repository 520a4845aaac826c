"""Whether an engine fits the server and the GPU that are to run it, found before it is compiled or loaded. Pure.

What does not fit is refused with the command that mends it. What nobody can know here is a note.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tritonforge.errors import EngineMismatch, UnknownRelease
from tritonforge.pipeline.machine import Gpu
from tritonforge.releases.table import Container, find_release, release_of_triton, version_key
from tritonforge.repository.layout import engine_model_name

TENSORRT_LLM, VLLM, LLMAPI = "tensorrt_llm", "vllm", "llmapi"
# Its release does not decide what it serves; this is the first whose backend has what is rendered.
VLLM_IMAGE = "nvcr.io/nvidia/tritonserver:25.05-vllm-python-py3"
# How one tritonserver serves engines of several ranks, as upstream's launch script has it.
_ORCHESTRATOR = ("TRTLLM_ORCHESTRATOR=1", "TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES=1")


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What is known of the server that is to load an engine.

    Args:
        triton: Its version of Triton; None when that is not known.
        backends: The backends that it has; None when that is not known.
        gpus: The GPUs that it sees; empty when that is not known.
    """

    triton: str | None = None
    backends: tuple[str, ...] | None = None
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineNeeds:
    """What one version's engine needs to run.

    Args:
        model: Public name of the model.
        number: Version number.
        kind: Kind of its engine.
        backend: Triton's backend; None when that is not known.
        release: TensorRT-LLM release; None for engines of no release, or when it is not known.
        gpu_architecture: GPU that it is compiled for; None when that is not known.
        gpus: Numbers of its GPUs; empty for the first ones.
        image: Container that was asked for; None takes the release's.
        mount: Where the server sees the repository; None where it is.
        ranks: GPUs that share one copy of the engine.
        tensorrt: Version of the TensorRT that compiled it; None when that is not known, or none did.
    """

    model: str
    number: int
    kind: str
    backend: str | None = None
    release: str | None = None
    gpu_architecture: str | None = None
    gpus: tuple[int, ...] = ()
    image: str | None = None
    mount: str | None = None
    ranks: int = 1
    tensorrt: str | None = None

    @property
    def engine_model(self) -> str:
        """Name of its Triton model."""
        return engine_model_name(self.model, self.number)

    @property
    def container(self) -> str | None:
        """The container that it runs in; None when there is no saying."""
        if self.kind == VLLM:
            return VLLM_IMAGE
        if self.image is not None or self.release is None:
            return self.image
        with suppress(UnknownRelease):
            containers = find_release(self.release).containers
            return next((one.image for one in reversed(containers) if self.fits(one)), containers[-1].image)
        return None

    @property
    def host_backend(self) -> str | None:
        """The backend by which a server is known that can run it. The LLM API is Python on what comes with another."""
        return "tensorrtllm" if self.kind == LLMAPI else self.backend

    @property
    def places(self) -> tuple[int, ...]:
        """Numbers of the GPUs that it runs on: the first ones when none are named, as when it is built."""
        return self.gpus or tuple(range(self.ranks))

    def fits(self, container: Container) -> bool:
        """Whether a container has the TensorRT that compiled it, as far as that is known."""
        return self.tensorrt is None or _library(self.tensorrt) == _library(container.tensorrt)


@dataclass(frozen=True, slots=True)
class Advice:
    """What the commands that mend something are made of.

    Args:
        repository: The model repository.
        spec: forge.yaml; None when it is not known which.
    """

    repository: Path
    spec: Path | None = None

    def rebuild(self, needs: EngineNeeds) -> str:
        """The command that builds a version again."""
        path = "forge.yaml" if self.spec is None else str(self.spec)
        argv = ["tritonforge", "build", "-f", path, "--model", needs.model, "--version", str(needs.number)]
        return shlex.join([*argv, "--replace"])

    def run(self, image: str, *engines: EngineNeeds) -> str:
        """The command that starts a container with versions and their gateways, and what to know as a comment.

        The repository is mounted to be read only: Python would write its bytecode into version folders, and a version
        whose folder has changed is loaded again.

        Args:
            image: The container.
            engines: What the versions need; at least one.
        """
        repository = str(self.repository.absolute())
        mount = engines[0].mount or repository
        server = ["tritonserver", "--model-repository", mount, "--model-control-mode", "explicit"]
        names = dict.fromkeys([*(one.engine_model for one in engines), *(one.model for one in engines)])
        models = [word for name in names for word in ("--load-model", name)]
        docker = ["docker", "run", "--rm", "--gpus", "all", "--network", "host", "--shm-size", "2g"]
        has_ranks = any(one.kind == TENSORRT_LLM and one.ranks > 1 for one in engines)
        env = [word for variable in _ORCHESTRATOR if has_ranks for word in ("-e", variable)]
        command = shlex.join([*docker, *env, "-v", f"{repository}:{mount}:ro", image, *server, *models])
        if has_ranks:
            return f"{command}  # starts a worker for each rank; read in upstream's launch script, not run"
        return f"{command}  # or a later container with vLLM" if image == VLLM_IMAGE else command


def check_needs(needs: EngineNeeds, server: ServerFacts, advice: Advice) -> tuple[str, ...]:
    """Refuse an engine that cannot run on a server.

    Args:
        needs: What it needs.
        server: The server.
        advice: For the commands that mend it.

    Returns:
        What could not be checked, one sentence each.

    Raises:
        EngineMismatch: The server lacks its backend or carries another release, or it is compiled for another GPU.
    """
    _check_backend(needs, server, advice)
    return (*_check_release(needs, server, advice), *_check_gpu(needs, server, advice))


def refuse(needs: EngineNeeds, problem: str, *, hint: str) -> NoReturn:
    """Refuse an engine by name.

    Raises:
        EngineMismatch: Always.
    """
    raise EngineMismatch(f"{needs.engine_model} cannot be loaded: {problem}", hint=hint)


def _check_backend(needs: EngineNeeds, server: ServerFacts, advice: Advice) -> None:
    if server.backends is None or needs.host_backend is None or needs.host_backend in server.backends:
        return
    where = f"a server with the backend {needs.backend!r}"
    if needs.container is not None:
        where = advice.run(needs.container, needs)
    what = f"TensorRT-LLM {needs.release}" if needs.kind == LLMAPI else f"Triton's backend {needs.backend!r}"
    found = ", ".join(server.backends)
    refuse(
        needs,
        f"it needs {what}, and the embedded server has {found} only",
        hint=f"run it with: {where}",
    )


def _check_release(needs: EngineNeeds, server: ServerFacts, advice: Advice) -> Iterator[str]:
    release = needs.release
    if release is None:
        if needs.kind == TENSORRT_LLM:
            yield f"{needs.engine_model}: its manifest does not say which TensorRT-LLM built it"
        return
    if server.triton is None:
        yield f"{needs.engine_model}: whether the server carries TensorRT-LLM {release} is not known"
        return
    carried = [one.name for one in release_of_triton(server.triton)]
    if not carried:
        yield (
            f"{needs.engine_model}: the release table has no container with Triton {server.triton}; whether it "
            f"carries TensorRT-LLM {release} is not known"
        )
    elif release in carried:
        yield from _check_tensorrt(needs, release, server.triton, advice)
    else:
        again = f"set engine.release to {carried[-1]} and run: {advice.rebuild(needs)}"
        image = needs.container
        refuse(
            needs,
            f"it is for TensorRT-LLM {release}; the server runs Triton {server.triton}, whose container carries "
            f"TensorRT-LLM {' or '.join(carried)}",
            hint=again if image is None else f"run it with: {advice.run(image, needs)}; or {again}",
        )


def _check_tensorrt(needs: EngineNeeds, release: str, triton: str, advice: Advice) -> Iterator[str]:
    """Containers of one release may have different ones, and an engine runs with the one that compiled it."""
    containers = find_release(release).containers
    servers = [one for one in containers if one.triton == triton]
    found = " or ".join(dict.fromkeys(one.tensorrt for one in servers))
    if needs.kind != TENSORRT_LLM or (needs.tensorrt is None and len({one.tensorrt for one in containers}) == 1):
        return
    if needs.tensorrt is None:
        yield (
            f"{needs.engine_model}: its manifest does not say which TensorRT built it; the server's has TensorRT "
            f"{found}, and other containers of TensorRT-LLM {release} have another one"
        )
        return
    if any(map(needs.fits, servers)):
        return
    again = f"build it in {servers[-1].image} (engine.image): {advice.rebuild(needs)}"
    image = needs.image or next((one.image for one in reversed(containers) if needs.fits(one)), None)
    refuse(
        needs,
        f"it is compiled with TensorRT {needs.tensorrt}; the server runs Triton {triton}, whose container has TensorRT "
        f"{found}",
        hint=again if image is None else f"run it with: {advice.run(image, needs)}; or {again}",
    )


def _library(version: str) -> tuple[int, ...]:
    """What names a TensorRT: the first three numbers. What follows is written by some and left out by others."""
    return version_key(version)[:3]


def _check_gpu(needs: EngineNeeds, server: ServerFacts, advice: Advice) -> Iterator[str]:
    if needs.kind != TENSORRT_LLM:
        return
    wanted = needs.gpu_architecture
    gpus = [gpu for gpu in server.gpus if gpu.index in needs.places]
    if wanted is None or not server.gpus:
        what = "for which GPU it is compiled" if wanted is None else f"whether the server's GPU is {wanted}"
        yield f"{needs.engine_model}: {what} is not known"
        return
    other = [gpu for gpu in gpus if gpu.architecture != wanted.rstrip("a")]
    for number in sorted(set(needs.places) - {gpu.index for gpu in gpus}):
        yield f"{needs.engine_model}: whether the server's GPU {number} is {wanted} is not known"
    if other:
        found = f"GPU {other[0].index} of the server is {other[0].architecture} ({other[0].name})"
        hint = f"build it on a machine with that GPU: {advice.rebuild(needs)}"
        refuse(needs, f"it is compiled for {wanted}; {found}", hint=hint)
