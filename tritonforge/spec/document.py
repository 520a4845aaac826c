"""YAML text → plain values that still know their lines. Pure.

The rules are those of YAML 1.2's core schema, without anchors, aliases and tags: ``true`` and ``false`` are the only
booleans (``yes`` and ``on`` are text), ``010`` is ten, and dates are text. Editors that complete by JSON Schema
read the file in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

TAG = "tag:yaml.org,2002:"
# Plain scalars that are not text: tag, pattern, possible first characters.
SCALARS: tuple[tuple[str, re.Pattern[str], list[str]], ...] = (
    (f"{TAG}null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    (f"{TAG}bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    (f"{TAG}int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789")),
    (
        f"{TAG}float",
        re.compile(
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        list("-+.0123456789"),
    ),
)
MAX_DEPTH = 32  # the deepest key of forge.yaml is at 7; the reader below is recursive
MAX_DIGITS = 40  # far beyond every limit of the specification, and below Python's own limit for parsing integers

KeyPath = tuple[str | int, ...]  # a key of a mapping as text, an index of a list as integer


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Args:
        path: Keys that lead to it; empty for the file as a whole.
        line: Line counted from 1, when known.
        text: What is wrong, with the value, and what was expected.
        hint: What to do about it, when there is more to say.
    """

    path: KeyPath
    line: int | None
    text: str
    hint: str | None = None


@dataclass(slots=True)
class Document:
    """The content of one YAML file.

    Args:
        value: Mappings, lists, text, numbers, booleans and None.
        lines: Line of each key or list item, counted from 1.
        problems: What is wrong with it as YAML, without looking at what the keys mean.
        unread: Where the value could not be read and is None instead.
    """

    value: object = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unread: set[KeyPath] = field(default_factory=set)

    def line_of(self, path: KeyPath) -> int:
        """Line of a key, or of the nearest key above it that is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_document(text: str) -> Document:
    """Read YAML text.

    Args:
        text: The whole file.

    Returns:
        Its content. With `problems`, the value holds what could be read.
    """
    document = Document()
    try:
        loader = _SpecLoader(text)
        root = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        document.problems.append(Problem((), line, f"holds the control character U+{ord(text[error.position]):04X}"))
    except yaml.MarkedYAMLError as error:
        document.problems.append(_syntax_problem(error))
    else:
        document.problems.extend(loader.refused)
        if root is not None and not loader.refused:  # an alias may stand for a tree of any size: do not walk it
            document.lines[()] = root.start_mark.line + 1
            document.value = _value(root, (), document)
    return document


def is_plain_scalar(text: str) -> bool:
    """Whether text would be a number, a boolean or null if it stood in the file without quotes."""
    return any(pattern.match(text) for _, pattern, _ in SCALARS)


class _SpecLoader(yaml.SafeLoader):
    """A composer that knows the core schema, notes anchors, aliases and tags, and does not nest without end."""

    yaml_implicit_resolvers = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.refused: list[Problem] = []
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose one node and what is below it."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs leave it without types
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
            problem = f"{sign}{event.anchor}: anchors and aliases are not part of forge.yaml; expected the value itself"
            self.refused.append(Problem((), line, problem))
        elif getattr(event, "tag", None) is not None:
            self.refused.append(
                Problem((), line, f"{event.tag}: tags are not part of forge.yaml; expected a plain value")
            )
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise yaml.composer.ComposerError(None, None, f"nested deeper than {MAX_DEPTH} levels", event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


for _tag, _pattern, _first in SCALARS:
    _SpecLoader.add_implicit_resolver(_tag, _pattern, _first)


def _syntax_problem(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark is not None else None
    text = error.problem or error.context or "cannot be read"
    if "'\\t'" in text:
        return Problem((), line, "a tab where YAML allows only spaces", "indent with spaces")
    if isinstance(error, yaml.composer.ComposerError) and "another document" in text:
        text = "a second document begins; expected one"
    elif error.context and error.context_mark is not None and error.problem:
        text = f"{text} ({error.context} that begins in line {error.context_mark.line + 1})"
    return Problem((), line, f"not valid YAML: {text}")


def _value(node: yaml.Node, path: KeyPath, document: Document) -> object:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for index, item in enumerate(node.value):
            document.lines[(*path, index)] = item.start_mark.line + 1
            items.append(_value(item, (*path, index), document))
        return items
    return _scalar(node, path, document)


def _mapping(node: yaml.MappingNode, path: KeyPath, document: Document) -> Mapping[object, object]:
    result: dict[object, object] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = _scalar(key_node, path, document) if isinstance(key_node, yaml.ScalarNode) else None
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            found = f"{key_node.value!r}" if isinstance(key_node, yaml.ScalarNode) else "a list or a mapping"
            document.problems.append(Problem(path, line, f"a key is {found}; expected text or a whole number"))
            continue
        below = (*path, str(key))
        if below in document.lines:  # 1 and "1" count as one key: a reader takes them for the same
            first = document.lines[below]
            document.problems.append(Problem(below, line, f"is given twice, first in line {first}; expected once"))
            continue
        document.lines[below] = line
        result[key] = _value(value_node, below, document)
    return result


def _scalar(node: yaml.Node, path: KeyPath, document: Document) -> object:
    text: str = node.value
    match node.tag.removeprefix(TAG):
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int" if len(text) > MAX_DIGITS:
            problem = f"is a number of {len(text)} digits; expected at most {MAX_DIGITS}"
            document.problems.append(Problem(path, node.start_mark.line + 1, problem))
            document.unread.add(path)
            return None
        case "int":
            return int(text)
        case "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text
