"""The drawing in the docstring of tritonforge.errors is the tree that the classes make."""

from __future__ import annotations

import importlib
import pkgutil

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
    """Names of all errors, found from the root: one that is not exported is found as well."""
    for module in pkgutil.iter_modules(errors.__path__):
        importlib.import_module(f"{errors.__name__}.{module.name}")
    return {cls.__name__ for cls in tree(errors.TritonforgeError) if cls.__module__.startswith(errors.__name__)}


def tree(root: type) -> list[type]:
    return [root, *(cls for child in root.__subclasses__() for cls in tree(child))]


def test_drawing_and_classes_are_the_same_tree() -> None:
    classes = {name: getattr(errors, name) for name in names()}
    real = {name: None if cls.__bases__[0] is Exception else cls.__bases__[0].__name__ for name, cls in classes.items()}

    assert drawn_tree() == real


def test_every_error_is_exported() -> None:
    assert names() <= set(errors.__all__)


def test_a_branch_is_one_module() -> None:
    for branch in errors.TritonforgeError.__subclasses__():
        modules = {cls.__module__ for cls in tree(branch) if cls.__name__ in names()}
        assert modules == {branch.__module__}


def test_each_branch_has_an_exit_code_of_its_own() -> None:
    branches = errors.TritonforgeError.__subclasses__()

    codes = [cls.exit_code for cls in branches]

    assert len(set(codes)) == len(codes)
    assert errors.TritonforgeError.exit_code not in codes
