"""What trtllm-build writes: kept in a log, told line by line, and read for the reason of a failure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tritonforge.engine.tensorrt_llm.command import BuildCommand
from tritonforge.engine.writing import naming
from tritonforge.errors import CommandFailed
from tritonforge.launch.process import tail_of

TAIL_LINES = 20
_LONGEST_LINE_BYTES = 64 * 1024
_LINE_END = re.compile(rb"\r\n|\n|\r")  # progress bars end their lines with a bare \r
_KILLED = (137, -9)
# What a line of the log says → what to do about it. CUDA's sentences are those of its error table.
_GPU_MEMORY = "free the GPU's memory, lower limits or engine.workers, or split the model over more GPUs"
_HINTS = (
    (
        "No space left on device",
        "free disk space where the engine is written and where the container engine has its data",
    ),
    ("unrecognized arguments", "this trtllm-build may be of another release than engine.release: see which one it is"),
    ("CUDA driver version is insufficient", "update the NVIDIA driver, or take an older release: tritonforge releases"),
    ("no CUDA-capable device", "trtllm-build needs a GPU even to compile: see nvidia-smi and tritonforge doctor"),
    ("CUDA out of memory", _GPU_MEMORY),
    ("OutOfMemory", _GPU_MEMORY),
)


class Lines:
    """Bytes as they come, as whole lines of text."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that end in `chunk`; empty ones are left out."""
        *whole, self._pending = _LINE_END.split(self._pending + chunk)
        if len(self._pending) > _LONGEST_LINE_BYTES:
            whole, self._pending = [*whole, self._pending], b""
        return _texts(whole)

    def rest(self) -> list[str]:
        """What is left of a last line without an end."""
        pending, self._pending = self._pending, b""
        return _texts([pending])


def prepare_log(log: Path) -> None:
    """Make an empty log, and its folder.

    Raises:
        BuildError: It cannot be written.
    """
    with naming(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")


def failed(command: BuildCommand, *, returncode: int, log: Path, out_of_memory: bool = False) -> CommandFailed:
    """The error of a command that ended badly, for the caller to raise.

    Args:
        command: What was run.
        returncode: Its exit code; negative for a signal.
        log: What it wrote.
        out_of_memory: Whether the container engine says that the kernel killed it for its memory.
    """
    tail = tail_of(log, TAIL_LINES)
    reason, hint = "", _hint(tail) or _hint_of_log(log)
    if out_of_memory:
        reason = "the container was killed: out of memory"
        hint = "free memory of this machine, or give the container engine more"
    elif returncode in _KILLED:
        reason = "killed with SIGKILL"
        hint = "if nobody killed it, the kernel did for want of memory: see dmesg"
    elif returncode == 127 and command.image is not None:
        hint = f"see whether {command.image} has {command.argv[0]} on its PATH"
    return CommandFailed(command.argv, returncode=returncode, tail=tail, log=log, reason=reason, hint=hint)


def _hint_of_log(log: Path) -> str:
    return (
        f"{log} has all that it wrote, and the reason may stand far above the last lines; for more of it: "
        f"engine.options: {{log_level: verbose}}"
    )


def _hint(tail: Sequence[str]) -> str | None:
    text = "\n".join(tail)
    return next((hint for said, hint in _HINTS if said in text), None)


def _texts(lines: Sequence[bytes]) -> list[str]:
    return [text for line in lines if (text := line.decode("utf-8", errors="replace").rstrip())]
