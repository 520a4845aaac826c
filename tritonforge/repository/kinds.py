"""What is particular about each kind of engine when its model is rendered: one row per kind.

A kind brings three things: a context builder (below), a folder of templates by its name, and, when it runs as a Python
model, its part of the runtime (`runtime_copy.RUNTIME_PARTS`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from tritonforge.artifacts import EngineArtifact
from tritonforge.errors import TemplateError
from tritonforge.repository.context import engine_context
from tritonforge.repository.engine_source import EngineSource, NamedContext
from tritonforge.repository.layout import engine_model_name
from tritonforge.repository.tensorrt_llm import tensorrt_llm_context
from tritonforge.repository.text_engines import llmapi_context, vllm_context
from tritonforge.spec.model import ResolvedVersion


def _openvino(source: EngineSource) -> NamedContext:
    return engine_context(source.version, server_folder=source.server_folder, with_histograms=source.with_histograms)


CONTEXTS: Mapping[str, Callable[[EngineSource], NamedContext]] = {
    "openvino": _openvino,
    "tensorrt_llm": tensorrt_llm_context,
    "vllm": vllm_context,
    "llmapi": llmapi_context,
}


def build_context(
    version: ResolvedVersion, engine: EngineArtifact, *, mount: str, with_histograms: bool
) -> NamedContext:
    """The variables of an engine's templates.

    Args:
        version: What the spec asks for.
        engine: What was compiled.
        mount: Absolute path of the repository as the server sees it.
        with_histograms: The target server knows `model_metrics` (Triton 2.52 and later).

    Raises:
        TemplateError: Engines of this kind cannot be rendered.
    """
    builder = CONTEXTS.get(engine.kind)
    if builder is None:
        known = ", ".join(sorted(CONTEXTS))
        raise TemplateError(engine.kind, f"engines of this kind cannot be rendered; expected one of {known}")
    folder = PurePosixPath(mount, engine_model_name(version.model_name, version.number), str(version.number))
    return builder(EngineSource(version, engine, str(folder), with_histograms))
