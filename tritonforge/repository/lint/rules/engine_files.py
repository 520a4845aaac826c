"""Files in version folders: engines that are whole, and Python models that load without touching their folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tritonforge.errors import RepositoryError
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import ModelView, RepositoryView
from tritonforge.repository.manifest import MANIFEST_NAME, read_manifest

# Files that an engine of each kind cannot load without.
ENGINE_FILES: Mapping[str, tuple[str, ...]] = {
    "openvino": ("engine.json", "openvino_model.bin", "openvino_model.xml"),
    "vllm": ("checkpoint/config.json",),
    "llmapi": ("checkpoint/config.json",),
    "tensorrt_llm": ("config.json", "rank0.engine"),
}


def _manifests_are_readable(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for folder in model.versions.values():
        path = folder / MANIFEST_NAME
        try:
            if path.exists():
                read_manifest(path)
        except RepositoryError as error:
            yield Problem(error.message, error.hint or "build this version again with --replace", path=path)


def _engines_are_whole(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for folder in model.versions.values():
        for name, size_bytes in _sizes(folder / MANIFEST_NAME).items():
            path = folder / name
            if not path.is_file():
                yield Problem(
                    f"{name} is in the manifest, but not in the folder",
                    "build this version again with --replace",
                    path=path,
                )
            elif path.stat().st_size != size_bytes:
                yield Problem(
                    f"{name} has {path.stat().st_size} bytes, but had {size_bytes} when it was published: it was cut "
                    f"short or replaced",
                    "copy the file again, or build this version again with --replace",
                    path=path,
                )


def _engine_files_are_there(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    needed = ENGINE_FILES.get(model.parameter("engine_kind") or "", ())
    for number in model.loaded_versions:
        folder = model.versions[number]
        missing = [name for name in needed if not (folder / name).exists()]
        if not missing or (folder / MANIFEST_NAME).exists():
            continue
        if len(missing) == len(needed):
            yield Problem(
                f"version {number} holds no engine: it was rendered without one, and Triton cannot load it",
                "build and publish it",
                path=folder,
                severity=Severity.WARNING,
            )
        else:
            yield Problem(
                f"version {number} lacks {', '.join(missing)}", "build this version again with --replace", path=folder
            )


def _python_is_compiled(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.backend != "python" or model.is_ensemble:
        return
    for number in model.loaded_versions:
        folder = model.versions[number]
        if not all(_has_caches(Path(directory), names) for directory, _, names in os.walk(folder)):
            yield Problem(
                f"version {number} has Python files without a __pycache__; Triton's import writes one, and the next "
                f"load then reloads this version although nothing changed",
                f"run python -m compileall --invalidation-mode unchecked-hash {folder}, with the server's Python",
                path=folder,
            )


def _sizes(manifest: Path) -> Mapping[str, int]:
    try:
        return read_manifest(manifest).files if manifest.exists() else {}
    except RepositoryError:
        return {}  # reported by manifest-broken


def _has_caches(directory: Path, names: Sequence[str]) -> bool:
    """Every Python file of a directory was compiled."""
    sources = {name.removesuffix(".py") for name in names if name.endswith(".py")}
    if not sources:
        return True
    caches = directory / "__pycache__"
    compiled = {path.name.split(".")[0] for path in caches.iterdir()} if caches.is_dir() else set()
    return sources <= compiled


ENGINE_FILE_RULES = (
    ModelRule(
        "manifest-broken",
        Severity.ERROR,
        "forge-manifest.json says what a version was made from; without it, nothing can be checked.",
        _manifests_are_readable,
        needs_config=False,
    ),
    ModelRule(
        "engine-truncated",
        Severity.ERROR,
        "A file that differs in size from what was published is damaged, usually by a copy that was cut short.",
        _engines_are_whole,
        needs_config=False,
    ),
    ModelRule(
        "engine-missing",
        Severity.ERROR,
        "A version folder without its engine files fails to load.",
        _engine_files_are_there,
    ),
    ModelRule(
        "python-cache",
        Severity.WARNING,
        "Triton compares a version folder's time stamps at each load. Python's first import writes a cache into the "
        "folder; the next load then reloads a version that is serving.",
        _python_is_compiled,
    ),
)
