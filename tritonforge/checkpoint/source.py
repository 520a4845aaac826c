"""Opening a Hugging Face folder: config.json, tensors, family. What is not supported is refused with all reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tritonforge.checkpoint.families import ARCHITECTURES, architecture_of, family_of
from tritonforge.checkpoint.families.base import Family, Reading, SourceFacts, TargetTensor
from tritonforge.checkpoint.families.scope import (
    already_converted,
    general_reasons,
    unknown_architecture,
    wrapper_reasons,
)
from tritonforge.errors import (
    CheckpointError,
    CheckpointNotFound,
    CorruptFile,
    MissingWeight,
    ShapeMismatch,
    UnsupportedModel,
)
from tritonforge.formats.input_file import has_file, reading
from tritonforge.formats.json_fields import JsonFields, read_json_object
from tritonforge.formats.safetensors import TensorFolder
from tritonforge.formats.trtllm import FLOAT_TYPES, TrtllmConfig

_CONFIG_NAME = "config.json"
# Endings of tensors that carry nothing of their own: rotary frequencies follow from config.json.
DERIVED = ("inv_freq",)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class SourceCheckpoint:
    """A Hugging Face checkpoint that is supported, with all of its tensors in place.

    Args:
        folder: The folder.
        fields: config.json.
        family: ``llama`` or ``chatglm``.
        architecture: First of its ``architectures``.
        config: Configuration of the TensorRT-LLM checkpoint that comes of it, in the dtype that `auto` stands for.
        weights: Its tensors.
        targets: Tensors of the TensorRT-LLM checkpoint, and what each is made of.
        engine_reasons: Why single engines cannot serve it, by engine.
    """

    folder: Path
    fields: JsonFields
    family: str
    architecture: str
    config: TrtllmConfig
    weights: TensorFolder
    targets: tuple[TargetTensor, ...]
    engine_reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def open_checkpoint(folder: Path, *, as_it_is: bool = False) -> SourceCheckpoint:
    """Open a Hugging Face folder and check that each tensor is there in the shape that config.json implies.

    Args:
        folder: The folder.
        as_it_is: For an engine that reads the folder itself: what only our own conversion cannot express is allowed,
            quantised weights among it, and tensors are not compared with config.json one by one.

    Raises:
        CheckpointNotFound: The folder, config.json or a weight file does not exist.
        CorruptFile: A file is damaged, or config.json has a wrong type or an impossible value.
        UnsupportedModel: The checkpoint is of a kind that is not supported; it carries every reason found.
        MissingWeight, ShapeMismatch: Weights and config.json do not belong together.
    """
    fields = read_config_json(folder)
    architecture = architecture_in(fields)
    family = family_of(architecture)
    converted = already_converted(fields)
    if converted is not None:
        hint = "name the Hugging Face folder that it was made of; nothing is converted twice"
        raise UnsupportedModel(str(folder), [converted], hint=hint)
    reasons = list(wrapper_reasons(fields) if as_it_is else general_reasons(fields))
    subject = f"{folder} ({architecture or 'unnamed architecture'})"
    if family is None:
        raise UnsupportedModel(subject, [unknown_architecture(architecture, ARCHITECTURES), *reasons])
    weights = _open_weights(folder)
    facts = SourceFacts(folder, fields, architecture, weights if isinstance(weights, TensorFolder) else None)
    reading = _read(family, facts, subject, reasons)
    reasons += () if as_it_is else reading.reasons
    if isinstance(weights, UnsupportedModel):
        reasons += weights.reasons
    if reasons:
        raise UnsupportedModel(subject, reasons, hint=weights.hint if isinstance(weights, UnsupportedModel) else None)
    if isinstance(weights, CheckpointError):
        raise weights
    targets = family.tensors(facts, reading.config)
    if not as_it_is:
        _check_weights(weights, targets, subject)
    return SourceCheckpoint(
        folder, fields, family.name, architecture, reading.config, weights, targets, reading.engine_reasons
    )


def read_config_json(folder: Path) -> JsonFields:
    """config.json of a folder.

    Raises:
        CheckpointNotFound: There is no such folder, or no config.json in it.
        CorruptFile: The folder cannot be read, or config.json is not a file with a JSON object.
    """
    path = folder / _CONFIG_NAME
    with reading(folder):
        if folder.is_file() and folder.suffix == ".gguf":
            hint = f"make a folder of it first: tritonforge import-gguf {folder} FOLDER"
            raise CheckpointNotFound(f"{folder}: is a file; expected a Hugging Face folder", hint=hint)
        if not folder.is_dir():
            raise CheckpointNotFound(f"{folder}: no such folder", hint="pass the folder that holds config.json")
        if not has_file(path):
            if (folder / "adapter_config.json").exists():
                hint = "it is an adapter: merge it into its base model and save that"
            else:
                hint = "a Hugging Face checkpoint has a config.json beside its *.safetensors"
            raise CheckpointNotFound(f"{path}: no such file", hint=hint)
    return JsonFields(read_json_object(path), path)


def architecture_in(fields: JsonFields) -> str:
    """The architecture that config.json names, else the one that its ``model_type`` stands for, else ''."""
    named = fields.strings("architectures")
    return named[0] if named else architecture_of(fields.text("model_type", ""))


def _open_weights(folder: Path) -> TensorFolder | CheckpointError:
    """The tensors, or why they cannot be had: that is raised later, when config.json gives no better reason."""
    try:
        return TensorFolder.open(folder)
    except CheckpointError as error:
        return error


def _read(family: Family, facts: SourceFacts, subject: str, reasons: list[str]) -> Reading:
    try:
        return family.read(facts)
    except CorruptFile as error:
        # A checkpoint that is refused anyway may lack what the family reads; the refusal says more than that.
        if reasons:
            raise UnsupportedModel(subject, reasons) from error
        raise


def _check_weights(weights: TensorFolder, targets: tuple[TargetTensor, ...], subject: str) -> None:
    expected = {source.name: source for target in targets for source in target.sources}
    for name, source in expected.items():
        if name not in weights:
            raise MissingWeight(name, folder=weights.place, hint=_missing_hint(name))
        found = weights.info(name)
        if found.shape != source.shape:
            raise ShapeMismatch(name, expected=source.shape, found=found.shape, file=found.file, reason=source.reason)
        if found.dtype not in FLOAT_TYPES.values():
            raise UnsupportedModel(
                subject, [f"tensor {name!r} has dtype {found.dtype}; expected {', '.join(FLOAT_TYPES.values())}"]
            )
    unused = [name for name in weights.names() if name not in expected and not name.endswith(DERIVED)]
    if unused:
        more = f" and {len(unused) - _SHOWN} more" if len(unused) > _SHOWN else ""
        names = ", ".join(unused[:_SHOWN])
        raise UnsupportedModel(subject, [f"it has tensors that its architecture does not use: {names}{more}"])


def _missing_hint(name: str) -> str | None:
    if name in ("lm_head.weight", "transformer.output_layer.weight"):
        return "a checkpoint that shares it with the embedding says so: tie_word_embeddings in config.json"
    return None
