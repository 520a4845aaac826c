"""The drawing in the docstring of tritonforge.errors is the tree that the classes make."""

from __future__ import annotations

import inspect

from tritonforge import errors


def drawn_tree() -> dict[str, str | None]:
    """Class name → parent, read from the drawing; a step of four columns is one level."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        text = line.replace("│", " ").replace("├─", "  ").replace("└─", "  ")
        words = text.split()
        if not words or words[0] not in names():
            continue
        depth = (len(text) - len(text.lstrip()) - 3) // 4
        path = [*path[:depth], words[0]]
        parents[words[0]] = path[-2] if depth else None
    return parents


def names() -> set[str]:
    return {
        name
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, errors.TritonforgeError)
    }


def test_drawing_and_classes_are_the_same_tree() -> None:
    classes = {name: getattr(errors, name) for name in names()}
    real = {name: None if cls.__bases__[0] is Exception else cls.__bases__[0].__name__ for name, cls in classes.items()}

    assert drawn_tree() == real


def test_each_branch_has_an_exit_code_of_its_own() -> None:
    branches = errors.TritonforgeError.__subclasses__()

    codes = [cls.exit_code for cls in branches]

    assert len(set(codes)) == len(codes)
    assert errors.TritonforgeError.exit_code not in codes
