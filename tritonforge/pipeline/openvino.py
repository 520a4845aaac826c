"""Versions of kind openvino: compiled in this process for the CPU."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from pathlib import Path

from tritonforge import __version__
from tritonforge.artifacts import CheckpointArtifact, EngineArtifact
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.engine.build import build
from tritonforge.engine.capacity import check_limits, kv_capacity
from tritonforge.errors import ToolMissing, UsageBug
from tritonforge.events import OnEvent
from tritonforge.pipeline.cache_key import CacheKey
from tritonforge.pipeline.recipe import Ingredients, Recipe, plan_conversion
from tritonforge.spec.openvino import OpenVinoEngineSpec

KIND = "openvino"


def plan_openvino(ingredients: Ingredients) -> Recipe:
    """How a version of this kind is made.

    Raises:
        SpecError, BuildError: The limits do not fit the model or the KV cache.
        ToolMissing: OpenVINO is not installed.
    """
    source, spec = ingredients.source, _spec(ingredients.version.engine)
    limits = ingredients.version.limits.fitted_to(source.config.max_position_embeddings)
    capacity = kv_capacity(
        source.config, kv_cache_precision=spec.kv_cache_precision, kv_cache_bytes=spec.runtime.kv_cache_bytes
    )
    check_limits(source.config, capacity, limits)
    options = ConvertOptions(dtype=_checkpoint_dtype(spec, source))
    conversion = plan_conversion(ingredients, options, for_engine=KIND)
    tools = {"tritonforge": __version__, "openvino": _openvino_version()}
    parts = {
        "kind": KIND,
        **conversion.key.parts,
        "engine": spec.model_dump(mode="json"),
        "limits": limits.model_dump(mode="json"),
        **tools,
    }
    return Recipe(
        version=replace(ingredients.version, limits=limits),
        source=source,
        conversion=conversion,
        engine_key=CacheKey.of("engines", parts),
        tools=tools,
    )


def build_openvino(
    recipe: Recipe,
    checkpoint: CheckpointArtifact,
    out: Path,
    *,
    log: Path,  # noqa: ARG001 - nothing is run that could write one
    on_event: OnEvent,
) -> EngineArtifact:
    """Compile the engine of a version of this kind."""
    version = recipe.version
    return build(_spec(version.engine), checkpoint, out, limits=version.limits, on_event=on_event)


def _spec(engine: object) -> OpenVinoEngineSpec:
    if not isinstance(engine, OpenVinoEngineSpec):
        raise UsageBug(f"{type(engine).__name__} as an engine of kind {KIND}")
    return engine


def _checkpoint_dtype(engine: OpenVinoEngineSpec, source: SourceCheckpoint) -> str:
    """Dtype of the checkpoint between source and engine. Integer weights are rounded once, from the source's own."""
    if engine.precision in ("float32", "float16"):
        return engine.precision
    stored = {source.weights.info(name).dtype for name in source.weights.names()}
    return "float32" if "F32" in stored else source.config.dtype


def _openvino_version() -> str:
    try:
        return package_version(KIND)
    except PackageNotFoundError as error:
        hint = 'pip install "tritonforge[embedded]"'
        raise ToolMissing("OpenVINO", looked_in="this Python environment", hint=hint) from error
