"""Hand-made repositories as literals: paths and texts."""

from __future__ import annotations

import json
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


def serving(number: int = 1, **changes: object) -> str:
    """The serving.json of a version."""
    value = {
        "engine_version": number,
        "engine_kind": "openvino",
        "dialect": "tensorrt_llm",
        "tokenizer": {"kind": "huggingface", "eos_token_ids": [2], "pad_token_id": 2},
        "limits": {"max_batch_size": 8, "max_input_len": 64, "max_seq_len": 128},
        "default_max_tokens": 16,
        "vocab_size": 64,
    }
    return json.dumps(value | changes)


def findings_of(root: Path, files: Mapping[str, str], code: str) -> list[Finding]:
    """What one rule finds in a repository of these files."""
    return [finding for finding in lint(build_tree(root, files)) if finding.code == code]
