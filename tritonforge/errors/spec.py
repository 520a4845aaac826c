"""What is wrong with forge.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritonforge.errors.base import TritonforgeError


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


class UnknownRelease(SpecError):
    """The release table does not know a TensorRT-LLM release.

    Args:
        name: What was asked for.
        nearest: The known releases nearest to it, oldest first.
    """

    def __init__(self, name: str, nearest: Sequence[str]) -> None:
        super().__init__(
            f"release {name!r} is not in the release table; expected one like {' or '.join(nearest)}, the nearest",
            hint="tritonforge releases lists the releases that are known",
        )
        self.name = name
        self.nearest = tuple(nearest)
