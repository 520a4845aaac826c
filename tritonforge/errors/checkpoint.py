"""What is wrong with a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritonforge.errors.base import TritonforgeError


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
