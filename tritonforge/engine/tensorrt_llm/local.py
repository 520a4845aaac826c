"""Runs trtllm-build as it is installed on this machine."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tritonforge.engine.tensorrt_llm.argv import PROGRAM
from tritonforge.engine.tensorrt_llm.command import BuildCommand
from tritonforge.engine.tensorrt_llm.output import Lines, failed, prepare_log
from tritonforge.errors import BuildError, ToolMissing
from tritonforge.events import OnEvent
from tritonforge.formats.trtllm_engine import same_release
from tritonforge.launch.command import Command
from tritonforge.launch.owner import owned
from tritonforge.launch.process import Process

_LOOK_EVERY_S = 0.2  # how often the log is read for new lines
_GRACE_S = 5.0  # an interrupted build has nothing to save
_ASKING_S = 60.0  # a Python that reads the metadata of one package, perhaps from a cold network disk
# TensorRT's package has had these names; which of them an environment has is from memory.
_ASK_VERSIONS = """
import importlib.metadata as m
print(m.version("tensorrt_llm"))
for name in ("tensorrt", "tensorrt_cu13", "tensorrt_cu12"):
    try:
        print(m.version(name))
    except m.PackageNotFoundError:
        continue
    break
"""
_LONGEST_FIRST_LINE_BYTES = 4096
_USE_DOCKER = "or let the release's container build it: engine.executor: docker"


@dataclass(frozen=True, slots=True)
class Installed:
    """What a trtllm-build of this machine belongs to.

    Args:
        tensorrt_llm: Version of TensorRT-LLM.
        tensorrt: Version of TensorRT; None when its package is not found.
    """

    tensorrt_llm: str
    tensorrt: str | None


class LocalExecutor:
    """Runs the trtllm-build that is on PATH, if it is of the right release.

    Args:
        release: The release that it has to be of.
        search_path: Folders to look in, written as in PATH; None takes PATH itself.
        grace_s: Seconds between SIGTERM and SIGKILL when the build is ended early.
    """

    def __init__(self, release: str, *, search_path: str | None = None, grace_s: float = _GRACE_S) -> None:
        self._release = release
        self._search_path = search_path
        self._grace_s = grace_s

    def prepare(self, image: str | None, *, on_event: OnEvent) -> None:  # noqa: ARG002 - the protocol's
        """See whether the program is there and of the release; see `Executor`."""
        self._program()

    def run(self, command: BuildCommand, *, log: Path, on_event: OnEvent) -> None:
        """Run the command; see `Executor`."""
        program = self._program()
        on_event(f"running {program} of TensorRT-LLM {self._release}")
        argv = (str(program), *command.argv[1:])
        prepare_log(log)
        started = Command(argv, env={**command.env, **owned()}, cwd=Path(command.cwd))
        with _started(started, log, self._grace_s) as process, log.open("rb") as written:
            code = _follow(process, written, on_event)
        if code != 0:
            raise failed(command, returncode=code, log=log)

    def _program(self) -> Path:
        program = find_program(self._search_path)
        version = installed_version(program)
        if not same_release(version, self._release):
            raise BuildError(
                f"{program} is of TensorRT-LLM {version}; expected {self._release}, the spec's engine.release",
                hint=f"install tensorrt-llm=={self._release}, set engine.release to what is installed, {_USE_DOCKER}",
            )
        return program


def find_program(search_path: str | None = None) -> Path:
    """trtllm-build as found on PATH, or in the folders of `search_path`.

    Raises:
        ToolMissing: It is in none of them.
    """
    found = shutil.which(PROGRAM, path=search_path)
    if found is None:
        raise ToolMissing(
            PROGRAM,
            looked_in=f"PATH: {search_path or os.environ.get('PATH', '')}",
            hint=f"activate the environment that has tensorrt-llm, {_USE_DOCKER}",
        )
    return Path(found)


def installed_version(program: Path) -> str:
    """The TensorRT-LLM that a trtllm-build belongs to; see `installed`.

    Raises:
        BuildError: It cannot be found out.
    """
    return installed(program).tensorrt_llm


def installed(program: Path) -> Installed:
    """The TensorRT-LLM that a trtllm-build belongs to and its TensorRT, asked of the Python that runs the script.

    Most releases have no option that prints it, and importing the package itself takes long and wants a GPU.

    Raises:
        BuildError: It cannot be found out.
    """
    argv = [*interpreter_of(program), "-c", _ASK_VERSIONS]
    try:
        asked = subprocess.run(
            argv, capture_output=True, text=True, timeout=_ASKING_S, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise _unknown(program, f"{argv[0]}: {error}") from error
    versions = asked.stdout.split()
    if asked.returncode != 0 or not versions:
        said = asked.stderr.strip().splitlines()
        raise _unknown(program, f"{argv[0]}: {said[-1] if said else f'exited with {asked.returncode}'}")
    return Installed(versions[0], versions[1] if len(versions) > 1 else None)


def interpreter_of(program: Path) -> list[str]:
    """The Python that runs a script which pip has made, from the script's first lines.

    Raises:
        BuildError: It is no such script.
    """
    try:
        with program.open("rb") as script:
            first, second = (script.readline(_LONGEST_FIRST_LINE_BYTES).decode(errors="replace") for _ in range(2))
    except OSError as error:
        raise _unknown(program, str(error)) from error
    if not first.startswith("#!"):
        raise _unknown(program, "it is no script with a #! line")
    try:
        # The second form is how pip writes a path with spaces, or one too long for the first line.
        exec_line = second.startswith("'''exec'")
        words = shlex.split(second.removeprefix("'''exec'"))[:1] if exec_line else shlex.split(first.removeprefix("#!"))
    except ValueError as error:
        raise _unknown(program, str(error)) from error
    if not any("python" in Path(word).name for word in words):
        raise _unknown(program, f"its first line is {first.strip()!r}, and names no Python")
    return words


def _unknown(program: Path, reason: str) -> BuildError:
    return BuildError(
        f"{program}: cannot tell which TensorRT-LLM it belongs to: {reason}",
        hint=f"put the trtllm-build of a pip-installed tensorrt-llm first on PATH, {_USE_DOCKER}",
    )


def _started(command: Command, log: Path, grace_s: float) -> Process:
    try:
        return Process(command, log=log, grace_s=grace_s)
    except OSError as error:
        raise BuildError(f"{command.argv[0]}: cannot be run: {error}", hint="see its rights and its #! line") from error


def _follow(process: Process, written: BinaryIO, on_event: OnEvent) -> int:
    """Tell each line that the process writes until it ends; returns its exit code."""
    lines = Lines()
    while True:
        try:
            code: int | None = process.wait(_LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            code = None
        for line in lines.feed(written.read()):
            on_event(line)
        if code is not None:
            for line in lines.rest():
                on_event(line)
            return code
