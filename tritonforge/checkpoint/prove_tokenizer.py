"""Proof that the gateway can use a tokenizer and its chat template, found before anything is published.

A gateway that meets an unusable tokenizer does not load, and takes the healthy versions of its model down with it. So
the gateway's own code is tried on one prompt and one chat. Templates are programs that come with a checkpoint: they are
tried in a process of its own, where one that loops or fills the memory does no harm.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import tritonforge
from tritonforge.artifacts import TokenizerArtifact
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.checkpoint.tokenizer_trial import CHAT, TEMPLATE, TEMPLATED
from tritonforge.errors import CheckpointError

TIME_LIMIT_S = 30
MEMORY_LIMIT_BYTES = 4 * 1024**3
# The limit counts time on a processor, so that a busy machine refuses nothing. The wall clock is there for what waits.
_WALL_SECONDS_PER_LIMIT = 4
# The working directory is not on the path (-P), so that no file in it hides a library.
_BOOT = """
import sys
sys.path.append(sys.argv[1])
from tritonforge.checkpoint.tokenizer_trial import main
main(sys.argv[2:])
"""
_START = "start"


def prove_tokenizer(
    source: SourceCheckpoint,
    tokenizer: TokenizerArtifact,
    *,
    time_limit_s: int = TIME_LIMIT_S,
    memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
) -> None:
    """Load a tokenizer as the gateway does, and encode one prompt and, where there is a template, one chat.

    Args:
        source: The checkpoint.
        tokenizer: Its tokenizer.
        time_limit_s: Seconds of computing that this may take.
        memory_limit_bytes: Memory that this may take.

    Raises:
        CheckpointError: One of these fails, or takes more than it may; the error names the file and the reason.
    """
    limits = (str(source.config.vocab_size), str(time_limit_s), str(memory_limit_bytes))
    package = Path(tritonforge.__file__).parents[1]
    argv = [sys.executable, "-P", "-c", _BOOT, str(package), tokenizer.kind, str(source.folder.resolve()), *limits]
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}  # threads take address space for their stacks
    try:
        child = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WALL_SECONDS_PER_LIMIT * time_limit_s,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        step, _ = _events(error.stdout or b"")
        raise _failed(source, tokenizer, step, f"it takes longer than {time_limit_s} s") from error
    step, last = _events(child.stdout)
    if child.returncode == -signal.SIGXCPU:
        raise _failed(source, tokenizer, step, f"it takes longer than {time_limit_s} s")
    if "problem" in last:
        raise _failed(source, tokenizer, step, str(last["problem"]))
    if child.returncode or "done" not in last:
        raise _failed(source, tokenizer, step, _ended(child, memory_limit_bytes))


def _events(output: bytes) -> tuple[str, dict[str, object]]:
    """The step that was begun last, and the last event."""
    lines = [line for line in output.splitlines(keepends=True) if line.endswith(b"\n")]
    events: list[dict[str, object]] = [json.loads(line) for line in lines]
    steps = [str(event["step"]) for event in events if "step" in event]
    return steps[-1] if steps else _START, events[-1] if events else {}


def _ended(child: subprocess.CompletedProcess[bytes], memory_limit_bytes: int) -> str:
    """Why a trial ended without a word."""
    said = child.stderr.decode(errors="replace").strip().splitlines()
    why = f": {said[-1]}" if said else ""
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        return f"it ends by {name}, with at most {memory_limit_bytes / 1024**3:g} GiB of memory{why}"
    return f"it ends with exit code {child.returncode}{why}"


def _failed(source: SourceCheckpoint, tokenizer: TokenizerArtifact, step: str, reason: str) -> CheckpointError:
    file = source.folder / _file_of(step, tokenizer)
    return CheckpointError(
        f"{file}: cannot be used to {step}: {reason}",
        hint="the gateway would not serve it: repair the tokenizer's files, or take them from the published checkpoint",
    )


def _file_of(step: str, tokenizer: TokenizerArtifact) -> str:
    """The file that a step is about; a template may lie in any of three."""
    templates = ("chat_template.jinja", "tokenizer_config.json") if tokenizer.kind in TEMPLATED else ()
    texts = ("tokenizer.json",) if tokenizer.kind == "huggingface" else ("tokenizer.model",)
    names = (*templates, *texts) if step in (TEMPLATE, CHAT) else texts
    return next((name for name in names if name in tokenizer.files), texts[0])
