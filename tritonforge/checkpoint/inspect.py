"""What a checkpoint is, and whether it is supported: reads config.json, tensor headers and the tokenizer, no tensor."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tritonforge.checkpoint.families import family_of
from tritonforge.checkpoint.families.base import ENGINES, SourceFacts
from tritonforge.checkpoint.prove_tokenizer import prove_tokenizer
from tritonforge.checkpoint.source import DERIVED, SourceCheckpoint, architecture_in, open_checkpoint, read_config_json
from tritonforge.checkpoint.tokenizer import find_tokenizer
from tritonforge.errors import CheckpointError, UnsupportedModel
from tritonforge.formats.safetensors import TensorFolder
from tritonforge.formats.trtllm import FLOAT_TYPES, TrtllmConfig

_FP16_BYTES = 2
_KEYS_AND_VALUES = 2


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """What is known of a checkpoint. Of an unsupported one, what cannot be told is None.

    Args:
        family: ``llama`` or ``chatglm``; None when no family claims it.
        architecture: First of config.json's ``architectures``.
        supported: At least one engine can serve it.
        reasons: Why it, or one of the engines, cannot be used.
        engines: The engines that can serve it.
        parameters: Number of weights; a tied lm_head counts once.
        dtype: Type of the stored weights.
        kv_bytes_per_token: Size of keys and values of one token in all layers, in float16.
        num_layers: Decoder layers.
        hidden_size: Width of the residual stream.
        num_heads: Query heads.
        num_kv_heads: Key and value heads.
        head_size: Width of one head.
        rotary_base: Base of the rotary frequencies.
        rotary_scaling: Stretching of positions, if any.
        rotary_dim: Dimensions of each head that rotate.
        tied_embeddings: lm_head and embedding are one tensor.
        vocab_size: Rows of the embedding; ChatGLM: the padded size.
        max_position: Positions that the model was trained for.
        tokenizer: Kind of its tokenizer; None when there is none that can be used.
        tokenizer_problem: Why there is none.
    """

    family: str | None
    architecture: str
    supported: bool
    reasons: tuple[str, ...]
    engines: tuple[str, ...] = ()
    parameters: int | None = None
    dtype: str | None = None
    kv_bytes_per_token: int | None = None
    num_layers: int | None = None
    hidden_size: int | None = None
    num_heads: int | None = None
    num_kv_heads: int | None = None
    head_size: int | None = None
    rotary_base: float | None = None
    rotary_scaling: Mapping[str, object] | None = None
    rotary_dim: int | None = None
    tied_embeddings: bool | None = None
    vocab_size: int | None = None
    max_position: int | None = None
    tokenizer: str | None = None
    tokenizer_problem: str | None = None


def inspect(folder: Path) -> CheckpointInfo:
    """Describe a Hugging Face folder. An unsupported checkpoint is described too, with the reasons.

    Raises:
        CheckpointNotFound, CorruptFile, MissingWeight, ShapeMismatch: The folder is incomplete or damaged.
    """
    try:
        return _describe_supported(open_checkpoint(folder))
    except UnsupportedModel as error:
        return _describe_refused(folder, error)


def _describe_supported(source: SourceCheckpoint) -> CheckpointInfo:
    shapes = {part.name: part.shape for target in source.targets for part in target.sources}
    engines = tuple(engine for engine in ENGINES if not source.engine_reasons.get(engine))
    refusals = sorted(source.engine_reasons.items())
    info = CheckpointInfo(
        family=source.family,
        architecture=source.architecture,
        supported=bool(engines),
        reasons=tuple(f"{engine}: {reason}" for engine, reasons in refusals for reason in reasons),
        engines=engines,
        parameters=sum(math.prod(shape) for shape in shapes.values()),
        dtype=_stored_dtype(source.weights),
    )
    return _with_tokenizer(_with_sizes(info, source.config), source)


def _describe_refused(folder: Path, error: UnsupportedModel) -> CheckpointInfo:
    fields = read_config_json(folder)
    architecture = architecture_in(fields)
    family = family_of(architecture)
    try:
        weights = TensorFolder.open(folder)
    except CheckpointError:  # the refusal already says what is wrong with them
        weights = None
    info = CheckpointInfo(
        family=family.name if family else None,
        architecture=architecture or fields.text("architecture", ""),  # TensorRT-LLM names it like this
        supported=False,
        reasons=error.reasons,
        parameters=_count(weights) if weights else None,
        dtype=_stored_dtype(weights) if weights else None,
    )
    try:
        reading = family.read(SourceFacts(folder, fields, architecture, weights)) if family else None
    except CheckpointError:  # outside the supported form, a configuration need not have what the family reads
        reading = None
    return _with_sizes(info, reading.config) if reading else info


def _with_sizes(info: CheckpointInfo, config: TrtllmConfig) -> CheckpointInfo:
    per_layer = _KEYS_AND_VALUES * config.num_key_value_heads * config.head_size * _FP16_BYTES
    return replace(
        info,
        kv_bytes_per_token=per_layer * config.num_hidden_layers,
        num_layers=config.num_hidden_layers,
        hidden_size=config.hidden_size,
        num_heads=config.num_attention_heads,
        num_kv_heads=config.num_key_value_heads,
        head_size=config.head_size,
        rotary_base=config.rotary_base,
        rotary_scaling=None if config.rotary_scaling is None else config.rotary_scaling.to_json(),
        rotary_dim=config.rotary_dim,
        tied_embeddings=config.tied_embeddings,
        vocab_size=config.vocab_size,
        max_position=config.max_position_embeddings,
    )


def _with_tokenizer(info: CheckpointInfo, source: SourceCheckpoint) -> CheckpointInfo:
    """The weights of a checkpoint without a usable tokenizer can be converted all the same."""
    try:
        tokenizer = find_tokenizer(source)
        prove_tokenizer(source, tokenizer)
    except CheckpointError as error:
        return replace(info, tokenizer_problem=error.message)
    return replace(info, tokenizer=tokenizer.kind)


def _count(weights: TensorFolder) -> int:
    return sum(math.prod(weights.info(name).shape) for name in weights.names() if not name.endswith(DERIVED))


def _stored_dtype(weights: TensorFolder) -> str:
    """The type that holds most weights, in the spelling of config.json; the format's own for what is not a float."""
    sizes: Counter[str] = Counter()
    for name in weights.names():
        sizes[weights.info(name).dtype] += math.prod(weights.info(name).shape)
    code = sizes.most_common(1)[0][0]
    return next((name for name, spelling in FLOAT_TYPES.items() if spelling == code), code)
