"""The changelog's newest release is the package's version."""

from __future__ import annotations

import re
from pathlib import Path

import tritonforge

ROOT = Path(__file__).parents[1]


def test_newest_entry_is_the_package_version() -> None:
    versions = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)

    assert versions[0] == tritonforge.__version__


def test_pyproject_has_the_package_version() -> None:
    assert f'version = "{tritonforge.__version__}"' in (ROOT / "pyproject.toml").read_text()
