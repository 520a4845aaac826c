"""Every error that tritonforge raises on purpose, in one tree.

    TritonforgeError                 exit 1
    ├─ SpecError                     exit 2
    │   ├─ SpecNotFound
    │   └─ SpecInvalid
    ├─ CheckpointError               exit 3
    │   ├─ CheckpointNotFound
    │   ├─ CorruptFile
    │   ├─ MissingWeight
    │   ├─ ShapeMismatch
    │   └─ UnsupportedModel
    ├─ BuildError                    exit 4
    │   ├─ CommandFailed
    │   └─ ToolMissing
    ├─ RepositoryError               exit 5
    │   ├─ ConfigInvalid
    │   ├─ PublishFailed
    │   ├─ RepositoryLocked
    │   └─ TemplateError
    ├─ ServerError                   exit 6
    │   ├─ NotReady
    │   ├─ PortTaken
    │   └─ ServerExited
    └─ ClientError                   exit 7
        ├─ TransportError
        │   ├─ Cancelled
        │   ├─ ConnectFailed
        │   └─ TimedOut
        ├─ Rejected
        │   ├─ InvalidRequest
        │   ├─ ModelNotFound
        │   └─ ModelNotReady
        └─ StreamBroken

Misuse by the programmer (a closed client, a stream read twice) is a `UsageBug`, which the command line does not catch.

A message says what failed with its value, what was expected, and, in `hint`, what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar


class TritonforgeError(Exception):
    """Base of all errors that a user can do something about.

    Args:
        message: What failed, with its value, and what was expected instead.
        hint: What to do about it, as one sentence or one command.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def did_you_mean(name: str, known: Sequence[str]) -> str | None:
    """The sentence that points from a misspelt name to the nearest known one, or None when nothing is near."""
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else None


# ---- what the user wrote ----------------------------------------------------------------------------------


class SpecError(TritonforgeError):
    """The specification (forge.yaml) cannot be used."""

    exit_code = 2


class SpecNotFound(SpecError):
    """There is no specification at the given path."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: no such specification",
            hint="pass its path with -f, or write a forge.yaml in this folder",
        )
        self.path = path


class SpecInvalid(SpecError):
    """One or several keys of the specification are wrong; the fields are about the first of them by line.

    Args:
        path: The file.
        line: Line of the key or value, counted from 1, when known.
        key: Dotted path of the key, for example ``models[0].versions.1.engine.kind``.
        problem: What is wrong, with the value, and what was expected.
        also: The other problems of the same file, each as one line that names its place.
    """

    def __init__(
        self,
        path: Path,
        *,
        line: int | None,
        key: str,
        problem: str,
        hint: str | None = None,
        also: Sequence[str] = (),
    ) -> None:
        place = f"{path}:{line}" if line is not None else str(path)
        head = f"{place}: {key}: {problem}" if key else f"{place}: {problem}"
        super().__init__("\n".join([head, *also]), hint=hint)
        self.path = path
        self.line = line
        self.key = key
        self.problem = problem
        self.also = tuple(also)


# ---- checkpoints ------------------------------------------------------------------------------------------


class CheckpointError(TritonforgeError):
    """A checkpoint cannot be read or converted."""

    exit_code = 3


class CheckpointNotFound(CheckpointError):
    """A folder or one of the files that a checkpoint consists of does not exist."""


class CorruptFile(CheckpointError):
    """A file is not what its name or its header says: truncated, wrong magic, impossible header.

    Args:
        path: The file.
        problem: What is wrong with it.
    """

    def __init__(self, path: Path, problem: str, *, hint: str | None = "download or copy the file again") -> None:
        super().__init__(f"{path}: {problem}", hint=hint)
        self.path = path
        self.problem = problem


class MissingWeight(CheckpointError):
    """A tensor that the architecture needs is not in the checkpoint."""

    def __init__(self, name: str, *, folder: Path, hint: str | None = None) -> None:
        super().__init__(f"{folder}: tensor {name!r} is missing", hint=hint)
        self.name = name
        self.folder = folder


class ShapeMismatch(CheckpointError):
    """A tensor does not have the shape that config.json implies.

    Args:
        name: Tensor name.
        expected: Shape implied by the configuration.
        found: Shape in the file.
        file: File that holds the tensor.
        reason: Where the expected shape comes from, for example ``2 KV heads × 128``.
    """

    def __init__(
        self, name: str, *, expected: Sequence[int], found: Sequence[int], file: Path, reason: str = ""
    ) -> None:
        because = f" ({reason})" if reason else ""
        super().__init__(
            f"{file}: {name} has shape {list(found)}, expected {list(expected)}{because}",
            hint="config.json and the weights are not of the same model",
        )
        self.name = name
        self.expected = tuple(expected)
        self.found = tuple(found)
        self.file = file


class UnsupportedModel(CheckpointError):
    """The checkpoint is sound, but of a kind that is not supported. `reasons` says why, each by name."""

    def __init__(self, subject: str, reasons: Sequence[str], *, hint: str | None = None) -> None:
        super().__init__(f"{subject} is not supported: {'; '.join(reasons)}", hint=hint)
        self.subject = subject
        self.reasons = tuple(reasons)


# ---- engines ----------------------------------------------------------------------------------------------


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
    """

    def __init__(self, argv: Sequence[str], *, returncode: int, tail: Sequence[str], log: Path | None = None) -> None:
        where = f"; full log: {log}" if log is not None else ""
        last = "".join(f"\n  {line}" for line in tail)
        super().__init__(f"{argv[0]} exited with {returncode}{where}; last lines:{last}")
        self.argv = tuple(argv)
        self.returncode = returncode
        self.tail = tuple(tail)
        self.log = log


# ---- repositories -----------------------------------------------------------------------------------------


class RepositoryError(TritonforgeError):
    """A model repository cannot be written, read or changed."""

    exit_code = 5


class ConfigInvalid(RepositoryError):
    """A config.pbtxt is not a valid ModelConfig.

    Args:
        file: The file.
        problem: What is wrong.
        line: Line counted from 1, when known.
    """

    def __init__(self, file: Path | str, problem: str, *, line: int | None = None, hint: str | None = None) -> None:
        place = f"{file}:{line}" if line is not None else str(file)
        super().__init__(f"{place}: {problem}", hint=hint)
        self.file = file
        self.line = line
        self.problem = problem


class PublishFailed(RepositoryError):
    """A version could not be published; the repository is as it was before."""


class RepositoryLocked(RepositoryError):
    """Another process is changing the repository."""


class TemplateError(RepositoryError):
    """A template is missing, does not parse, or uses a variable that does not exist.

    Args:
        template: Its name.
        problem: What is wrong.
        line: Line in the template counted from 1, when known.
    """

    def __init__(self, template: str, problem: str, *, line: int | None = None) -> None:
        place = f"{template}:{line}" if line is not None else template
        super().__init__(f"template {place}: {problem}")
        self.template = template
        self.line = line
        self.problem = problem


# ---- servers ----------------------------------------------------------------------------------------------


class ServerError(TritonforgeError):
    """A Triton server could not be started or stopped."""

    exit_code = 6


class ServerExited(ServerError):
    """The server ended before it was ready, or while it was needed.

    Args:
        returncode: Its exit code; negative for a signal.
        tail: The last lines of its log.
        log: Its log file.
    """

    def __init__(self, returncode: int, *, tail: Sequence[str], log: Path | None, hint: str | None = None) -> None:
        where = f"; full log: {log}" if log is not None else ""
        last = "".join(f"\n  {line}" for line in tail)
        super().__init__(f"tritonserver exited with {returncode}{where}; last lines:{last}", hint=hint)
        self.returncode = returncode
        self.tail = tuple(tail)
        self.log = log


class NotReady(ServerError):
    """The server or a model was not ready in time.

    Args:
        waiting_for: What was waited for.
        after_s: Seconds waited.
        reason: The server's own reason, when it gave one.
    """

    def __init__(self, waiting_for: str, *, after_s: float, reason: str = "", hint: str | None = None) -> None:
        because = f": {reason}" if reason else ""
        super().__init__(f"{waiting_for} not ready after {after_s:.0f} s{because}", hint=hint)
        self.waiting_for = waiting_for
        self.after_s = after_s
        self.reason = reason


class PortTaken(ServerError):
    """A port that was asked for is in use."""

    def __init__(self, port: int, *, host: str, option: str) -> None:
        super().__init__(f"port {port} on {host} is in use", hint=f"stop what uses it, or pass another {option}")
        self.port = port
        self.host = host


# ---- clients ----------------------------------------------------------------------------------------------


class ClientError(TritonforgeError):
    """A request to a server did not succeed."""

    exit_code = 7


class TransportError(ClientError):
    """The request or its answer did not get through. `server` is the address that was asked."""

    def __init__(self, message: str, *, server: str, hint: str | None = None) -> None:
        super().__init__(f"{server}: {message}", hint=hint)
        self.server = server


class ConnectFailed(TransportError):
    """No connection to the server."""


class TimedOut(TransportError):
    """The deadline of the call passed."""

    def __init__(self, *, server: str, after_s: float) -> None:
        super().__init__(f"no answer within {after_s:g} s", server=server, hint="pass a longer timeout_s")
        self.after_s = after_s


class Cancelled(TransportError):
    """The call was cancelled, by us or by the server."""


class Rejected(ClientError):
    """The server understood the request and refused it.

    Args:
        detail: The server's own words.
        server: The address that was asked.
        status: The protocol's status, for example ``INVALID_ARGUMENT`` or ``400``.
    """

    def __init__(self, detail: str, *, server: str, status: str, hint: str | None = None) -> None:
        super().__init__(f"{server}: {detail}", hint=hint)
        self.detail = detail
        self.server = server
        self.status = status


class InvalidRequest(Rejected):
    """A field of the request is wrong."""


class ModelNotFound(Rejected):
    """The server has no model of that name or version."""


class ModelNotReady(Rejected):
    """The server has the model, but it is not loaded."""


class StreamBroken(ClientError):
    """A stream ended with an error after some tokens had arrived.

    Args:
        reason: What ended it.
        server: The address that was asked.
        chunks_received: Responses that had arrived before.
    """

    def __init__(self, reason: str, *, server: str, chunks_received: int) -> None:
        super().__init__(f"{server}: stream broken after {chunks_received} responses: {reason}")
        self.server = server
        self.chunks_received = chunks_received


class UsageBug(RuntimeError):
    """The library was used in a way that can never work; a fault in the calling program."""
