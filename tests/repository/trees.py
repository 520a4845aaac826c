"""Hand-made repositories as literals: paths and texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tritonforge.repository.lint import Finding, lint

TENSORS = """
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
PYTHON = 'backend: "python"\ninstance_group [ { kind: KIND_CPU } ]\n' + TENSORS


def build_tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write files; a path that ends with a slash is an empty folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(text)
    return root


def python_model(config: str = PYTHON, *, name: str = "m", version: str = "1") -> dict[str, str]:
    """A Python model with its compiled file."""
    return {
        f"{name}/config.pbtxt": config,
        f"{name}/{version}/model.py": "",
        f"{name}/{version}/__pycache__/model.cpython-311.pyc": "",
    }


def findings_of(root: Path, files: Mapping[str, str], code: str) -> list[Finding]:
    """What one rule finds in a repository of these files."""
    return [finding for finding in lint(build_tree(root, files)) if finding.code == code]
