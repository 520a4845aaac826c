"""Versions of kind tensorrt_llm: converted here, compiled by the release's trtllm-build for one GPU architecture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tritonforge import __version__
from tritonforge.artifacts import CheckpointArtifact, EngineArtifact
from tritonforge.checkpoint.options import ConvertOptions, SmoothQuant
from tritonforge.engine.capacity import check_positions
from tritonforge.engine.tensorrt_llm.argv import build_argv
from tritonforge.engine.tensorrt_llm.build import build_engine, prepare_build
from tritonforge.engine.tensorrt_llm.command import BuildCommand, plan_command
from tritonforge.engine.tensorrt_llm.executor import executor_for
from tritonforge.errors import BuildError, UsageBug
from tritonforge.events import OnEvent
from tritonforge.pipeline.builder import builder_of
from tritonforge.pipeline.cache_key import CacheKey
from tritonforge.pipeline.machine import Machine
from tritonforge.pipeline.recipe import Ingredients, Recipe, plan_conversion
from tritonforge.releases.table import find_release
from tritonforge.repository.tensorrt_llm import place_engine
from tritonforge.spec.model import ResolvedVersion
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

KIND = "tensorrt_llm"
# Options that say where and how fast it is compiled, and what is told meanwhile, not what comes of it.
_NOT_IN_KEY = ("checkpoint_dir", "output_dir", "workers", "log_level", "monitor_memory")
_UNKNOWN_GPU = (
    "the GPU architecture is not known (no nvidia-smi here): give engine.gpu_architecture, or an engine that does not "
    "fit the server's GPU is found when it is loaded"
)


def plan_tensorrt_llm(ingredients: Ingredients) -> Recipe:
    """How a version of this kind is made.

    Raises:
        SpecError: The release cannot do what is asked for, or the limits do not fit the model.
        CheckpointError: The release cannot take the checkpoint like that.
        BuildError: The limits are beyond the model's positions, or the GPUs of this machine are not those that the
            engine is for.
        RepositoryError: Its instance groups ask for what the backend cannot do.
    """
    spec = _spec(ingredients.version.engine)
    place_engine(ingredients.version)  # what cannot be rendered is not compiled for an hour first
    release = find_release(spec.release)
    limits = ingredients.version.limits.fitted_to(ingredients.source.config.max_position_embeddings)
    check_positions(ingredients.source.config, limits)  # trtllm-build only warns
    conversion = plan_conversion(ingredients, _convert_options(spec, ingredients), for_engine=KIND)
    architecture = _architecture(spec, ingredients.machine)
    builder = builder_of(spec, ingredients.machine)
    argv = build_argv(spec, limits, dtype=conversion.config.dtype, checkpoint="", out="")
    parts = {
        "kind": KIND,
        **conversion.key.parts,
        "release": release.name,
        **builder.key,
        "gpu_architecture": architecture or ingredients.machine.unknown,
        "trtllm-build": _options(argv),
    }
    return Recipe(
        version=replace(ingredients.version, limits=limits),
        source=ingredients.source,
        conversion=conversion,
        engine_key=CacheKey.of("engines", parts),
        release=release.name,
        gpu_architecture=architecture,
        tools={"tritonforge": __version__, **builder.tools},
        notes=() if architecture else (_UNKNOWN_GPU,),
    )


def prepare_tensorrt_llm(version: ResolvedVersion, *, pull: bool, on_event: OnEvent) -> None:
    """See that trtllm-build is there in the right release, before the hours that go into what it needs.

    Args:
        version: The version.
        pull: Whether to download its image when it is not there.
        on_event: Called with one line per step.

    Raises:
        BuildError: It is not there, or of another release.
    """
    spec = _spec(version.engine)
    prepare_build(spec, on_event=on_event, executor=executor_for(spec, pull=pull))


def build_tensorrt_llm(
    recipe: Recipe, checkpoint: CheckpointArtifact, out: Path, *, log: Path, on_event: OnEvent
) -> EngineArtifact:
    """Compile the engine of a version of this kind."""
    version = recipe.version
    return build_engine(_spec(version.engine), checkpoint, out, limits=version.limits, log=log, on_event=on_event)


def commands_tensorrt_llm(recipe: Recipe, *, checkpoint: Path, out: Path) -> tuple[BuildCommand, ...]:
    """The programs that compiling it runs."""
    if recipe.conversion is None:
        raise UsageBug(f"a recipe of kind {KIND} without a conversion")
    version, dtype = recipe.version, recipe.conversion.config.dtype
    return (plan_command(_spec(version.engine), version.limits, dtype=dtype, checkpoint=checkpoint, out=out),)


def _spec(engine: object) -> TensorRtLlmEngineSpec:
    if not isinstance(engine, TensorRtLlmEngineSpec):
        raise UsageBug(f"{type(engine).__name__} as an engine of kind {KIND}")
    return engine


def _convert_options(spec: TensorRtLlmEngineSpec, ingredients: Ingredients) -> ConvertOptions:
    ranges = spec.activation_ranges
    smoothquant = spec.smoothquant
    return ConvertOptions(
        precision=spec.precision,
        tp=spec.tensor_parallel,
        pp=spec.pipeline_parallel,
        embedding_sharding=spec.embedding_sharding,
        kv_cache=spec.kv_cache,
        group_size=spec.group_size,
        smoothquant=SmoothQuant(smoothquant.alpha, smoothquant.per_channel, smoothquant.per_token),
        activation_ranges=None if ranges is None else ingredients.resolve(ranges),
        release=spec.release,
    )


def _architecture(spec: TensorRtLlmEngineSpec, machine: Machine) -> str | None:
    """The architecture that the engine will be for; None when nobody knows."""
    found = machine.architectures(spec.gpus or range(spec.ranks))
    asked = spec.gpu_architecture
    if len(found) > 1:
        raise BuildError(
            f"the GPUs {', '.join(map(str, spec.gpus or range(spec.ranks)))} of this machine are of several "
            f"architectures ({', '.join(found)}); an engine is compiled for one",
            hint="name GPUs of one architecture in engine.gpus",
        )
    if found and asked is not None and asked.rstrip("a") != found[0]:
        raise BuildError(
            f"engine.gpu_architecture is {asked}, but this machine's GPU is {found[0]}; trtllm-build compiles for the "
            f"GPU that it runs on",
            hint="build on a machine with that GPU, or choose it by engine.gpus",
        )
    return asked or (found[0] if found else None)


def _options(argv: Sequence[str]) -> Mapping[str, object]:
    """The options of a command line by name, but those that say only where and how fast it runs."""
    values: dict[str, list[str]] = {}
    for word in argv[1:]:
        if word.startswith("--"):
            values[word[2:]] = []
        else:
            values[list(values)[-1]].append(word)
    return {name: " ".join(words) or True for name, words in values.items() if name not in _NOT_IN_KEY}
