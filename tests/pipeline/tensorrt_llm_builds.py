"""Specifications of one small model with engines of kind tensorrt_llm."""

from __future__ import annotations

import json
from pathlib import Path

from tests.pipeline.builds import write_spec
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.pipeline.preview import Preview, preview_spec
from tritonforge.spec.load import load_spec

LIMITS = "    limits: {max_batch_size: 4, max_input_len: 64, max_seq_len: 128}\n"


def engine(release: str = "0.16.0", **fields: object) -> str:
    block = {"kind": "tensorrt_llm", "release": release, "executor": "local", **fields}
    return f"{{engine: {json.dumps(block)}}}"


def spec_of(folder: Path, checkpoint: Path, version: str | None = None, more: str = LIMITS) -> Path:
    return write_spec(folder, checkpoint, versions=f"1: {version or engine()}", more=more)


def preview(spec: Path, **options: object) -> Preview:
    return preview_spec(load_spec(spec), BuildOptions(**options))
