"""Model specs, engines and tokenizers made of a few bytes, for the tests of rendering and publishing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tritonforge.artifacts import EngineArtifact, TokenizerArtifact
from tritonforge.repository.layout import served_versions
from tritonforge.repository.manifest import Manifest
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.serving import ServedVersion, read_served_version
from tritonforge.spec.model import ModelSpec


def make_model(name: str = "tiny", **changes: Any) -> ModelSpec:
    engines = {number: {"engine": {"kind": "openvino", "precision": "float16"}} for number in (1, 2)}
    return ModelSpec.model_validate({"name": name, "checkpoint": "./nowhere", "versions": engines} | changes)


def make_engine(folder: Path, *, content: bytes = b"weights") -> EngineArtifact:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in {"engine.json": b"{}", "openvino_model.bin": content, "openvino_model.xml": b"<net/>"}.items():
        (folder / name).write_bytes(data)
    files = ("engine.json", "openvino_model.bin", "openvino_model.xml")
    return EngineArtifact(folder, "openvino", files, vocab_size=64, weights_bytes=len(content))


def make_tokenizer(folder: Path) -> TokenizerArtifact:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text("{}")
    return TokenizerArtifact("huggingface", {"tokenizer.json": folder / "tokenizer.json"}, (2,), 2)


def make_manifest(model: str = "tiny", version: int = 1) -> Manifest:
    return Manifest(model, version, "openvino", "c" * 64, "s" * 64, "2026-01-01T00:00:00Z", {"tritonforge": "0"})


def render_model(model: ModelSpec, cache: Path, out: Path, *, numbers: tuple[int, ...] = (1,)) -> list[Path]:
    """Engine folders and the gateway of a model, rendered into `out`."""
    served, folders = [], []
    for number in numbers:
        version = model.resolved(number)
        engine = make_engine(cache / f"engine{number}", content=b"weights of %d" % number)
        folders.append(render_engine(version, engine, out, mount="/models", manifest=make_manifest(model.name, number)))
        served.append(ServedVersion.of(version, engine, make_tokenizer(cache / "tokenizer")))
    weights = {number: 100.0 if number == numbers[0] else 0.0 for number in numbers}
    return [*folders, render_gateway(model, served, out, weights=weights)]


def copy_models(rendered: Path, out: Path) -> list[Path]:
    """Models rendered once for many tests; engines before gateways."""
    for folder in rendered.iterdir():
        shutil.copytree(folder, out / folder.name)
    return sorted((out / folder.name for folder in rendered.iterdir()), key=lambda path: "_engine_v" not in path.name)


def read_served(gateway: Path) -> list[ServedVersion]:
    """The versions that a gateway on disk knows, lowest first."""
    return [read_served_version(file) for file in served_versions(gateway).values()]
