"""Engines that serve a checkpoint as it is: the file with their arguments, and the checkpoint that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml
from tritonclient.grpc.model_config_pb2 import ModelInstanceGroup

from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import ModelView, RepositoryView
from tritonforge.repository.pbtxt import name_of

CHECKPOINT_FOLDER = "checkpoint"
MODEL_JSON, MODEL_YAML = "model.json", "model.yaml"
REMOTE_CODE = "trust_remote_code"
_WEIGHTS = "*.safetensors"
# PyYAML lets what Python says of a value that is not of its tag (`!!bool perhaps`) pass.
_UNREADABLE = (OSError, ValueError, RecursionError, yaml.YAMLError, LookupError, AttributeError, TypeError)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of one version, or why they cannot be read."""

    number: int
    path: Path
    values: Mapping[str, Any]
    problem: str | None = None


def _arguments_are_readable(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for arguments in _arguments_of(model):
        if arguments.problem is not None:
            yield Problem(
                f"{arguments.path.name} {arguments.problem}; the engine cannot be loaded",
                "write the engine's arguments into it, or build this version again with --replace",
                path=arguments.path,
            )
        elif not arguments.values.get("model"):
            yield Problem(
                f"{arguments.path.name} names no model; the engine loads one of its own choice, or fails",
                "write the checkpoint's folder as the server sees it under model",
                path=arguments.path,
            )


def _no_foreign_code_runs(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for arguments in _arguments_of(model):
        value = arguments.values.get(REMOTE_CODE)
        if value and str(value).lower() not in {"false", "no", "0"}:
            yield Problem(
                f"{REMOTE_CODE} is {_shown(value)}: whoever can change the checkpoint can run programs on the server",
                f"remove {REMOTE_CODE}, and serve a checkpoint that needs no code of its own",
                path=arguments.path,
            )


def _checkpoint_is_there(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for arguments in _arguments_of(model):
        named = str(arguments.values.get("model") or "")
        folder = arguments.path.parent / CHECKPOINT_FOLDER
        own = PurePosixPath(model.name, str(arguments.number), CHECKPOINT_FOLDER)
        if named and not named.startswith("/"):
            yield Problem(
                f"model is {named!r}, which the server downloads when it loads the model, in whatever state it is then",
                "name the folder of a checkpoint that lies in the version folder",
                path=arguments.path,
                severity=Severity.INFO,
            )
        elif PurePosixPath(named).parts[-3:] == own.parts:
            if not folder.exists() and model.parameter("engine_kind") is not None:
                continue  # rendered without a checkpoint, as engine-missing tells; or lost, as engine-truncated does
            if not (folder / "config.json").is_file() or not any(folder.glob(_WEIGHTS)):
                yield Problem(
                    f"model is {named!r}, and {CHECKPOINT_FOLDER}/ in version {arguments.number} holds no whole "
                    f"checkpoint (config.json and {_WEIGHTS})",
                    "build this version again with --replace",
                    path=arguments.path,
                )
        elif folder.is_dir():
            yield Problem(
                f"model is {named!r}; the checkpoint that was published with version {arguments.number} is at …/{own}",
                "build this version again with --replace and with `mount` set to where the server sees the repository",
                path=arguments.path,
                severity=Severity.WARNING,
            )


def _gpus_are_left_to_the_engine(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    if model.backend != "vllm":
        return
    kinds = [name_of(ModelInstanceGroup.Kind, group.kind) for group in model.config.instance_group]
    for arguments in _arguments_of(model):
        sizes = [arguments.values.get(name, 1) for name in ("tensor_parallel_size", "pipeline_parallel_size")]
        wanted = sizes[0] * sizes[1] if all(isinstance(size, int) for size in sizes) else 1
        if wanted > 1 and "KIND_GPU" in kinds:
            yield Problem(
                f"an instance group is KIND_GPU, which gives a copy one GPU, and {arguments.path.name} asks for "
                f"{wanted}; the backend refuses to load",
                "write kind: KIND_MODEL",
                line=model.line("instance_group"),
            )


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)[:40]


def _arguments_of(model: ModelView) -> Iterator[_Arguments]:
    name = _file_name(model)
    for number in model.loaded_versions if name is not None else ():
        path = model.versions[number] / str(name)
        if path.is_file():  # model-file-missing tells of one that is not
            yield _read(number, path)


def _file_name(model: ModelView) -> str | None:
    if model.backend == "vllm":
        return MODEL_JSON
    return MODEL_YAML if model.backend == "python" and model.parameter("engine_kind") == "llmapi" else None


def _read(number: int, path: Path) -> _Arguments:
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(text) if path.name == MODEL_JSON else yaml.safe_load(text)
    except _UNREADABLE as error:
        words = next(iter(str(error).splitlines()), "") or type(error).__name__
        return _Arguments(number, path, {}, f"cannot be read ({words})")
    if not isinstance(value, dict):
        return _Arguments(number, path, {}, f"holds a {type(value).__name__}, not keys with values")
    return _Arguments(number, path, value)


TEXT_ENGINE_RULES = (
    ModelRule(
        "engine-arguments",
        Severity.ERROR,
        "vLLM reads its arguments from model.json, the LLM API's model from model.yaml, in the version folder.",
        _arguments_are_readable,
    ),
    ModelRule(
        "remote-code",
        Severity.WARNING,
        "With trust_remote_code an engine runs Python files that come with the checkpoint.",
        _no_foreign_code_runs,
    ),
    ModelRule(
        "served-checkpoint",
        Severity.ERROR,
        "An engine that compiles nothing serves the checkpoint in its version folder, by the path that its arguments "
        "name.",
        _checkpoint_is_there,
    ),
    ModelRule(
        "vllm-gpus",
        Severity.ERROR,
        "Triton's KIND_GPU gives each copy one GPU; an engine of several takes them itself, under KIND_MODEL.",
        _gpus_are_left_to_the_engine,
    ),
)
