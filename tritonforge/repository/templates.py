"""Finds the templates and renders them strictly: a variable that does not exist is an error, never an empty string.

``templates/<kind>/`` mirrors the model folder that is rendered from it. A file ``*.j2`` is rendered, any other file is
copied, and a folder called ``VERSION`` becomes the number of the version.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from jinja2.sandbox import SandboxedEnvironment

import tritonforge
from tritonforge.errors import TemplateError
from tritonforge.repository.pbtxt import quoted

TEMPLATE_SUFFIX = ".j2"
VERSION_FOLDER = "VERSION"


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """One file of a rendered tree.

    Args:
        path: Where it goes, relative to the model folder.
        text: Its content.
        template: Name of the template that it came from, for messages.
    """

    path: Path
    text: str
    template: str


def builtin_folder() -> Path:
    """The templates that come with the package: inside the installed wheel, or at the root of the checkout."""
    package = Path(tritonforge.__file__).parent
    candidates = (package / "_templates", package.parent / "templates")
    for folder in candidates:
        if (folder / "pbtxt.j2").is_file():
            return folder
    raise TemplateError("pbtxt.j2", f"not found in {' or '.join(str(folder) for folder in candidates)}")


class TemplateTree:
    """Template folders searched in order, the built-in one last.

    Args:
        overrides: Folders whose files take the place of built-in ones of the same name, the most important first.
    """

    def __init__(self, overrides: Sequence[Path] = ()) -> None:
        self._folders = (*overrides, builtin_folder())
        self._environment = SandboxedEnvironment(
            loader=jinja2.FileSystemLoader([str(folder) for folder in self._folders]),
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.filters["quoted"] = quoted

    def render(self, kind: str, context: object, *, version: int) -> list[RenderedFile]:
        """Render the tree of one kind of model.

        Args:
            kind: Folder of the templates, for example ``gateway``.
            context: Dataclass whose fields are the variables of the templates.
            version: Number that replaces ``VERSION`` in paths.

        Raises:
            TemplateError: No such kind, or a template is wrong.
        """
        names = list(self._names(kind))
        if not names:
            known = ", ".join(sorted(self._kinds()))
            raise TemplateError(kind, f"there are no templates for this kind of model; known kinds: {known}")
        variables = {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}  # type: ignore[arg-type]  # any dataclass
        return [self._render_file(name, variables, version) for name in names]

    def _names(self, kind: str) -> Iterator[str]:
        seen = {
            path.relative_to(folder).as_posix()
            for folder in self._folders
            for path in (folder / kind).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        yield from sorted(seen)

    def _kinds(self) -> set[str]:
        return {path.name for folder in self._folders for path in folder.iterdir() if path.is_dir()}

    def _render_file(self, name: str, variables: Mapping[str, object], version: int) -> RenderedFile:
        relative = Path(*Path(name).parts[1:])
        path = Path(*(str(version) if part == VERSION_FOLDER else part for part in relative.parts))
        if not name.endswith(TEMPLATE_SUFFIX):
            return RenderedFile(path, self._source(name), name)
        try:
            text = self._environment.get_template(name).render(variables)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(error.name or name, error.message or "syntax error", line=error.lineno) from error
        except jinja2.TemplateError as error:
            raise TemplateError(name, str(error), line=_line_in_template(error, name)) from error
        return RenderedFile(path.with_suffix(""), text, name)

    def _source(self, name: str) -> str:
        loader = self._environment.loader
        assert loader is not None  # given in __init__
        return loader.get_source(self._environment, name)[0]


def _line_in_template(error: BaseException, name: str) -> int | None:
    """Line of the template where rendering failed: jinja2 rewrites tracebacks to carry it."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(name):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
