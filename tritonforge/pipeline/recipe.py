"""How one version is made from its checkpoint: everything that is decided before any work is done."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tritonforge import __version__
from tritonforge.checkpoint.limits import check_options
from tritonforge.checkpoint.options import QUANTISED, ConvertOptions
from tritonforge.checkpoint.plan import target_config
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.formats.input_file import open_input
from tritonforge.formats.trtllm import TrtllmConfig
from tritonforge.pipeline.cache_key import CacheKey
from tritonforge.pipeline.machine import Machine
from tritonforge.spec.model import ResolvedVersion

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What a recipe is made from.

    Args:
        version: What is asked for.
        source: Its checkpoint.
        digest: Digest of the checkpoint.
        resolve: The absolute path of a path as written in the specification.
        machine: Where it is going to be built.
    """

    version: ResolvedVersion
    source: SourceCheckpoint
    digest: str
    resolve: Callable[[str], Path]
    machine: Machine


@dataclass(frozen=True, slots=True)
class Conversion:
    """How the TensorRT-LLM checkpoint between source and engine is made.

    Args:
        options: Number format and ranks.
        for_engine: The engine that it is for.
        config: Configuration of what comes of it.
        key: What names it in the build cache.
        notes: What its reader should know about it.
    """

    options: ConvertOptions
    for_engine: str
    config: TrtllmConfig
    key: CacheKey
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one version is made.

    Args:
        version: What is asked for, with limits that fit the model.
        source: Its checkpoint.
        conversion: The step before the engine; None for an engine that takes the source as it is.
        engine_key: What names the engine in the build cache; None for an engine that is not compiled.
        release: TensorRT-LLM release that builds and runs it; None for other engines.
        gpu_architecture: GPU that it is compiled for; None when it is not bound to one, or that is not known.
        tools: Versions of what builds it, by name.
        notes: What a user should know about it, beside what the conversion has to say; one sentence each.
    """

    version: ResolvedVersion
    source: SourceCheckpoint
    conversion: Conversion | None = None
    engine_key: CacheKey | None = None
    release: str | None = None
    gpu_architecture: str | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def plan_conversion(ingredients: Ingredients, options: ConvertOptions, *, for_engine: str) -> Conversion:
    """The step from the source to the TensorRT-LLM checkpoint, with its name in the build cache.

    Raises:
        CheckpointError: The source cannot be converted like that, the release cannot take it, or the file of activation
            ranges cannot be read.
    """
    notes = tuple(check_options(ingredients.source, options, for_engine))
    config = target_config(ingredients.source, options)
    values = _deciding(options, dtype=config.dtype)
    parts = {"checkpoint": ingredients.digest, "tritonforge": __version__, "conversion": values}
    return Conversion(options, for_engine, config, CacheKey.of("checkpoints", parts), notes)


def _deciding(options: ConvertOptions, *, dtype: str) -> dict[str, object]:
    """What of the options decides the result: however a number format was asked for, and no setting of another one."""
    values = asdict(options) | {"dtype": dtype}
    if options.precision not in QUANTISED:
        values["precision"] = None  # said by dtype
    if options.precision != "int4_awq":
        del values["group_size"]
    if options.precision != "int8_smoothquant":
        del values["smoothquant"]
    if options.activation_ranges is not None:
        values["activation_ranges"] = _digest_of_file(options.activation_ranges)
    return values


def _digest_of_file(path: Path) -> str:
    digest = hashlib.sha256()
    with open_input(path) as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
