"""The TensorRT-LLM engine that lies in a model's own version folder, as the rules see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import PurePosixPath

from tritonforge.errors import UnknownRelease
from tritonforge.formats.trtllm_engine import EngineInfo
from tritonforge.releases.backend import BackendLine, backend_line
from tritonforge.releases.table import Release, find_release
from tritonforge.repository.lint.view import ModelView, OwnEngine

BACKEND = "tensorrtllm"
# Parameters that tritonforge writes for people and programs; the backend passes over them.
RELEASE_PARAMETER, KIND_PARAMETER = "tensorrt_llm_release", "engine_kind"


def own_engines(model: ModelView) -> Sequence[OwnEngine]:
    """The engines in the version folders that Triton loads; none for models of other backends."""
    return model.engines if model.backend == BACKEND else ()


def own_infos(model: ModelView) -> Iterator[tuple[OwnEngine, EngineInfo]]:
    """The engines of its own that the model loads and that can be read."""
    for engine in own_engines(model):
        if engine.info is not None and leads_to(model, engine.number):
            yield engine, engine.info


def leads_to(model: ModelView, number: int) -> bool:
    """Whether gpt_model_path ends as the path of one of the model's own version folders does."""
    path = PurePosixPath(model.parameter("gpt_model_path") or "")
    return path.parts[-2:] == (model.name, str(number))


def release_of(model: ModelView) -> Release | None:
    """The release that the config names, or else the one that built the engine; None when there is none known."""
    named = model.parameter(RELEASE_PARAMETER)
    names = [named] if named else [info.version for _, info in own_infos(model)]
    return _find(names[0]) if names else None


def line_of(model: ModelView) -> BackendLine | None:
    """The backend of that release."""
    release = release_of(model) if model.backend == BACKEND else None
    return None if release is None else backend_line(release)


@cache
def _find(name: str) -> Release | None:
    try:
        return find_release(name)
    except UnknownRelease:
        return None
