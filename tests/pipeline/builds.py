"""Specifications of one small model, and building them without a server."""

from __future__ import annotations

from pathlib import Path

from tritonforge.events import OnEvent, ignore
from tritonforge.pipeline.build import BuildResult, build_spec
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.spec.load import load_spec

INT8 = "{engine: {kind: openvino, precision: int8, runtime: {kv_cache_gib: 0.1}}}"
INT4 = "{engine: {kind: openvino, precision: int4, runtime: {kv_cache_gib: 0.1}}}"


def write_spec(folder: Path, checkpoint: Path, *, versions: str = f"1: {INT8}", more: str = "") -> Path:
    path = folder / "forge.yaml"
    path.write_text(
        f"schema: 1\nrepository: ./models\nmodels:\n  - name: tiny\n    checkpoint: {checkpoint}\n"
        f"    versions:\n      {versions}\n{more}"
    )
    return path


def build(spec: Path, *, on_event: OnEvent = ignore, **options: object) -> BuildResult:
    return build_spec(load_spec(spec), BuildOptions(**options), on_event=on_event)


def states(result: BuildResult) -> dict[int, str]:
    return {version.version: version.state for version in result.versions}
