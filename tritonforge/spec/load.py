"""forge.yaml on disk → specification. Every problem of the file is found in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tritonforge.errors import SpecError, SpecInvalid, SpecNotFound
from tritonforge.spec.document import KeyPath, Problem, read_document
from tritonforge.spec.forge import ForgeSpec
from tritonforge.spec.problems import dotted, problems_of, shown

MAX_FILE_BYTES = 2**20  # a thousand models fit; a weight file given by mistake is not read


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """A specification and the file that it was read from.

    Args:
        spec: The specification.
        path: Its file; the paths in it are relative to the folder of this file.
    """

    spec: ForgeSpec
    path: Path

    @property
    def folder(self) -> Path:
        """Absolute folder of the file."""
        return self.path.absolute().parent

    @property
    def repository(self) -> Path:
        """Absolute path of the model repository."""
        return self.resolve(self.spec.repository)

    def resolve(self, written: str) -> Path:
        """The absolute path of a path as written in the file; ``~`` is the home folder."""
        return self.folder / Path(written).expanduser()

    def place_of_engine(self, model: str, version: int) -> str:
        """Where the engine of a version is written, for messages: file, line and key."""
        index = [one.name for one in self.spec.models].index(model)
        key: KeyPath = ("models", index, "versions", str(version), "engine")
        try:
            line = f":{read_document(_text(self.path)).line_of(key)}"
        except SpecError:  # gone or changed since it was read
            line = ""
        return f"{self.path}{line}: {dotted(key)}"


def load_spec(path: Path) -> LoadedSpec:
    """Read a specification.

    Args:
        path: A forge.yaml.

    Raises:
        SpecNotFound: There is no such file.
        SpecInvalid: It cannot be used. The error is about the first problem by line; `also` names all others. Rules
            over several keys are checked once each of the keys is right by itself.
    """
    document = read_document(_text(path))
    if document.value is None and not document.problems:
        raise SpecInvalid(path, line=None, key="", problem="is empty; expected the keys schema, repository and models")
    problems = list(document.problems)
    if not isinstance(document.value, dict):
        if not problems:
            found = f"holds {shown(document.value)}; expected the keys schema, repository and models"
            problems.append(Problem((), document.line_of(()), found))
        raise _invalid(path, problems)
    try:
        spec = ForgeSpec.model_validate(document.value)
    except ValidationError as error:
        raise _invalid(path, [*problems, *problems_of(error, document)]) from error
    if problems:
        raise _invalid(path, problems)
    return LoadedSpec(spec, path)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise SpecNotFound(path) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SpecInvalid(path, line=None, key="", problem=f"cannot be read: {reason}; expected a YAML file") from error
    if len(content) > MAX_FILE_BYTES:
        problem = f"has more than {MAX_FILE_BYTES} bytes; expected a specification"
        raise SpecInvalid(path, line=None, key="", problem=problem, hint="pass a forge.yaml with -f")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"the byte 0x{content[error.start]:02X} is not UTF-8 text"
        raise SpecInvalid(path, line=line, key="", problem=problem, hint="save the file as UTF-8") from error


def _invalid(path: Path, problems: Sequence[Problem]) -> SpecInvalid:
    """One error for all problems; with several, each carries its own hint in its own line."""
    first, *others = sorted(problems, key=lambda problem: problem.line or 0)
    if not others:
        return _error(path, first.text, first, hint=first.hint)
    return _error(path, _with_hint(first), first, also=[_error(path, _with_hint(one), one).message for one in others])


def _error(
    path: Path, text: str, problem: Problem, *, hint: str | None = None, also: Sequence[str] = ()
) -> SpecInvalid:
    return SpecInvalid(path, line=problem.line, key=dotted(problem.path), problem=text, hint=hint, also=also)


def _with_hint(problem: Problem) -> str:
    return problem.text if problem.hint is None else f"{problem.text} ({problem.hint})"
