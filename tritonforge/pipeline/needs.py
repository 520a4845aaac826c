"""What an engine needs to run, read from what is published or planned. Files that others wrote are not trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath

import yaml
from tritonclient.grpc.model_config_pb2 import ModelConfig

from tritonforge.pipeline.compatibility import LLMAPI, VLLM, EngineNeeds
from tritonforge.pipeline.plan import VersionPlan
from tritonforge.repository.layout import CONFIG_NAME, PublishedVersion
from tritonforge.repository.pbtxt import parameter_of, read_config
from tritonforge.repository.text_engines import CHECKPOINT_FOLDER
from tritonforge.spec.load import LoadedSpec

# Triton's backend of each kind that is not a Python model.
_BACKENDS = {"tensorrt_llm": "tensorrtllm", "vllm": "vllm"}
# Files that name the place of the checkpoint as the server sees it.
_ARGUMENTS = {VLLM: "model.json", LLMAPI: "model.yaml"}
_LARGEST_BYTES = 1 << 20  # of such a file
_MOST_GPUS = 1 << 10


def needs_of(version: PublishedVersion) -> EngineNeeds:
    """What a published or staged version needs, as its manifest and its files say; what they say wrongly is not known.

    Raises:
        ConfigInvalid: Its config.pbtxt cannot be read.
    """
    path = version.folder.parent / CONFIG_NAME
    config = read_config(path) if path.is_file() else None
    manifest = version.manifest
    engine = manifest.settings.get("engine")
    settings = engine if isinstance(engine, dict) else {}
    gpus, ranks = _gpus(settings), _ranks(settings)
    tensorrt, image = manifest.tools.get("tensorrt"), settings.get("image")
    return EngineNeeds(
        model=version.model,
        number=version.number,
        kind=manifest.kind,
        backend=(config.backend or None) if config is not None else None,
        release=manifest.release,
        # On which GPUs it runs is as good as not known then: none is judged.
        gpu_architecture=None if gpus is None or ranks is None else manifest.gpu_architecture,
        gpus=gpus or (),
        image=image if isinstance(image, str) else None,
        mount=_mount(version, config),
        ranks=ranks or 1,
        tensorrt=tensorrt if isinstance(tensorrt, str) else None,
    )


def planned_needs(loaded: LoadedSpec, plan: VersionPlan) -> EngineNeeds:
    """What a version that is going to be built will need."""
    version, engine = plan.version, plan.version.engine
    return EngineNeeds(
        model=version.model_name,
        number=version.number,
        kind=engine.kind,
        backend=_BACKENDS.get(engine.kind, "python"),
        release=getattr(engine, "release", None),
        gpu_architecture=None if plan.recipe is None else plan.recipe.gpu_architecture,
        gpus=tuple(getattr(engine, "gpus", ())),
        image=getattr(engine, "image", None),
        mount=loaded.spec.mount,
        ranks=getattr(engine, "ranks", 1),
        tensorrt=None if plan.recipe is None else plan.recipe.tools.get("tensorrt"),
    )


def _gpus(settings: Mapping[str, object]) -> tuple[int, ...] | None:
    """Numbers of its GPUs; None when what is given is none."""
    given = settings.get("gpus") or []
    if not isinstance(given, list) or not all(_is_number(number, least=0) for number in given):
        return None
    return tuple(given)


def _ranks(settings: Mapping[str, object]) -> int | None:
    """GPUs that share one copy; None when what is given is no number of GPUs."""
    product = 1
    for name in ("tensor_parallel", "pipeline_parallel"):
        number = settings.get(name, 1)
        if not isinstance(number, int) or not _is_number(number, least=1):
            return None
        product *= number
    return product


def _is_number(value: object, *, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST_GPUS


def _mount(version: PublishedVersion, config: ModelConfig | None) -> str | None:
    """Where the server sees the repository, by what the version is told of its own place; None when that is not it."""
    own: tuple[str, ...] = (version.engine_model, str(version.number))
    told = None if config is None else parameter_of(config, "gpt_model_path")
    if version.manifest.kind in _ARGUMENTS:
        own, told = (*own, CHECKPOINT_FOLDER), _told_model(version)
    if not told or not told.startswith("/"):
        return None
    path = PurePosixPath(told)
    return str(path.parents[len(own) - 1]) if path.parts[-len(own) :] == own else None


def _told_model(version: PublishedVersion) -> str | None:
    """The place of its checkpoint in its arguments; None when they are no such file."""
    path = version.folder / _ARGUMENTS[version.manifest.kind]
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
            return None
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if version.manifest.kind == VLLM else yaml.safe_load(text)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError, yaml.YAMLError):
        return None
    model = values.get("model") if isinstance(values, dict) else None
    return model if isinstance(model, str) else None
