"""Who runs trtllm-build: the protocol that the executors share, and which of them a spec asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from tritonforge.engine.tensorrt_llm.command import BuildCommand
from tritonforge.events import OnEvent
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec


class Executor(Protocol):
    """Runs one build command to its end."""

    def prepare(self, image: str | None, *, on_event: OnEvent) -> None:
        """Refuse, before anything else is done, what `run` would refuse for want of something on this machine.

        Args:
            image: Image of the commands to come; None when they are to run on this machine itself.
            on_event: Called with one line per step.

        Raises:
            ToolMissing: The program is not there.
            ContainerError: The container engine or the image is not there.
            BuildError: The program is of another release.
        """

    def run(self, command: BuildCommand, *, log: Path, on_event: OnEvent) -> None:
        """Run the command. The program does not outlive the call, whatever exception ends it.

        There is no deadline: a build takes minutes or hours, and only who asked for it knows when it is too long.

        Args:
            command: What to run.
            log: File for all that it writes; overwritten.
            on_event: Called with each line that it writes.

        Raises:
            ToolMissing: The program is not there.
            ContainerError: The container engine cannot run it.
            CommandFailed: It ended with another exit code than 0.
            BuildError: It is of another release, or the log cannot be written.
        """


def executor_for(spec: TensorRtLlmEngineSpec, *, pull: bool = False) -> Executor:
    """The executor that a spec asks for.

    Args:
        spec: The engine.
        pull: Whether to download the image when it is not there; without it, that is an error which says how.
    """
    if spec.executor == "local":
        from tritonforge.engine.tensorrt_llm.local import LocalExecutor  # only what is asked for is imported

        return LocalExecutor(spec.release)
    from tritonforge.engine.tensorrt_llm.docker import DockerExecutor  # Docker's SDK is heavy

    return DockerExecutor(pull=pull)
