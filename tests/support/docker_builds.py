"""Builds with a stand-in for trtllm-build in containers of a real Docker Engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.docker_engine import DockerEngine
from tests.support.trtllm_builds import LIMITS, Adapted, empty_checkpoint, tensorrt_llm_spec
from tritonforge.artifacts import EngineArtifact
from tritonforge.engine.tensorrt_llm.build import build_engine
from tritonforge.engine.tensorrt_llm.docker import DockerExecutor
from tritonforge.events import OnEvent, ignore


class Builds:
    """Builds in one folder with one engine.

    Args:
        engine: The engine.
        folder: Folder for checkpoint, engine and log.
    """

    def __init__(self, engine: DockerEngine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.out = folder / "engine"
        self.log = folder / "build.log"

    def run(
        self,
        *,
        release: str = "0.16.0",
        on_event: OnEvent = ignore,
        env: dict[str, str] | None = None,
        changes: dict[str, object] | None = None,
        **fields: object,
    ) -> EngineArtifact:
        spec = tensorrt_llm_spec(**{"release": release, "image": self.engine.standin(release), **fields})
        checkpoint = self.folder / "checkpoint"
        made = empty_checkpoint(checkpoint, tp=spec.tensor_parallel, pp=spec.pipeline_parallel)
        gpus = {} if self.engine.gives_gpus else {"gpus": None}
        executor = Adapted(DockerExecutor(address=self.engine.address), env or {}, gpus | (changes or {}))
        return build_engine(spec, made, self.out, limits=LIMITS, log=self.log, on_event=on_event, executor=executor)

    def left(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


def at_line(wanted: str, action: Callable[[], object]) -> OnEvent:
    """Do something when a line comes."""

    def on_event(line: str) -> None:
        if line == wanted:
            action()

    return on_event
