"""Versions whose engine serves the Hugging Face checkpoint as it is: nothing is converted or compiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tritonforge import __version__
from tritonforge.artifacts import EngineArtifact, TokenizerArtifact
from tritonforge.checkpoint.families.rotary import read_rotary
from tritonforge.checkpoint.tokenizer import find_tokenizer
from tritonforge.engine.capacity import check_positions
from tritonforge.engine.served_checkpoint import check_heads, check_quantisation, check_tokenizer, prepare_served
from tritonforge.errors import UsageBug
from tritonforge.events import OnEvent
from tritonforge.pipeline.recipe import Ingredients, Recipe
from tritonforge.spec.engine import TextEngineSpec
from tritonforge.spec.llmapi import LlmApiEngineSpec
from tritonforge.spec.model import ResolvedVersion


def is_as_it_is(version: ResolvedVersion) -> bool:
    """Whether the engine of a version reads the Hugging Face folder itself."""
    return isinstance(version.engine, TextEngineSpec)


def plan_as_it_is(ingredients: Ingredients) -> Recipe:
    """How a version of such a kind is made.

    Raises:
        SpecError, BuildError: The limits, or the number of GPUs, do not fit the model.
        CheckpointError: It has no tokenizer, or one that the engine cannot load, or float weights where the spec says
            that they are quantised.
    """
    source, spec = ingredients.source, _spec(ingredients.version.engine)
    check_tokenizer(spec, source.folder, find_tokenizer(source).kind)
    check_quantisation(spec, source.fields)
    check_heads(spec, source.folder, source.config.num_attention_heads)
    limits = ingredients.version.limits.fitted_to(source.config.max_position_embeddings)
    if not read_rotary(source.fields, default_fraction=1.0).reasons:  # else only the engine knows how far it reaches
        check_positions(source.config, limits)
    release = spec.release if isinstance(spec, LlmApiEngineSpec) else None
    tools = {"tritonforge": __version__, **({} if release is None else {"tensorrt_llm": release})}
    return Recipe(version=replace(ingredients.version, limits=limits), source=source, release=release, tools=tools)


def gather_as_it_is(recipe: Recipe, tokenizer: TokenizerArtifact, out: Path, *, on_event: OnEvent) -> EngineArtifact:
    """Take the checkpoint of a version of such a kind along."""
    source = recipe.source
    return prepare_served(
        _spec(recipe.version.engine),
        source.folder,
        out,
        vocab_size=source.config.vocab_size,
        tokenizer_kind=tokenizer.kind,
        on_event=on_event,
    )


def _spec(engine: object) -> TextEngineSpec:
    if not isinstance(engine, TextEngineSpec):
        raise UsageBug(f"{type(engine).__name__} as an engine that serves a checkpoint as it is")
    return engine
