"""The data files of the release table, which ship inside the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

# The one in C, where PyYAML was built with it, reads the files ten times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FOLDER = Path(__file__).parent / "data"


def read_data(name: str) -> dict[str, Any]:
    """The content of one data file, read once.

    Args:
        name: File name without ``.yaml``.
    """
    return read_file(FOLDER / f"{name}.yaml")


@cache
def read_file(path: Path) -> dict[str, Any]:
    """The content of a YAML file, read once."""
    content: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    return content
