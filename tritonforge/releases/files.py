"""The data files of the release table, which ship inside the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

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
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content
