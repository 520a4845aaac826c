"""Who runs trtllm-build: the protocol that the executors share."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from tritonforge.engine.tensorrt_llm.command import BuildCommand
from tritonforge.events import OnEvent


class Executor(Protocol):
    """Runs one build command to its end."""

    def run(self, command: BuildCommand, *, log: Path, on_event: OnEvent) -> None:
        """Run the command; when the block that called it is left early, by any exception, the program is ended.

        Args:
            command: What to run.
            log: File for all that it writes; overwritten.
            on_event: Called with each line that it writes.

        Raises:
            ToolMissing: What is needed to run it is not there.
            CommandFailed: It ended with another exit code than 0.
            BuildError: It could not be run.
        """
