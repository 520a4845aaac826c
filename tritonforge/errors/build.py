"""Why an engine could not be built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritonforge.errors.base import TritonforgeError


class BuildError(TritonforgeError):
    """An engine could not be built."""

    exit_code = 4


class ToolMissing(BuildError):
    """A program or an optional package that a step needs is not installed.

    Args:
        tool: Its name.
        looked_in: Where it was looked for.
        hint: The command that installs it.
    """

    def __init__(self, tool: str, *, looked_in: str, hint: str) -> None:
        super().__init__(f"{tool} is not installed (looked in {looked_in})", hint=hint)
        self.tool = tool
        self.looked_in = looked_in


class CommandFailed(BuildError):
    """A command that was run for the user ended badly.

    Args:
        argv: The command.
        returncode: Its exit code; negative for a signal.
        tail: The last lines of its output.
        log: File with all of its output, when there is one.
        reason: Why it ended, when that is known from elsewhere than its output.
        hint: What to do about it.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        returncode: int,
        tail: Sequence[str],
        log: Path | None = None,
        reason: str = "",
        hint: str | None = None,
    ) -> None:
        because = f" ({reason})" if reason else ""
        where = f"; full log: {log}" if log is not None else ""
        last = "; last lines:" + "".join(f"\n  {line}" for line in tail) if tail else "; it wrote nothing"
        super().__init__(f"{argv[0]} exited with {returncode}{because}{where}{last}", hint=hint)
        self.argv = tuple(argv)
        self.returncode = returncode
        self.tail = tuple(tail)
        self.log = log


class ContainerError(BuildError):
    """The container engine could not run a build: it is not there, refuses, or lacks the image or the GPUs."""
