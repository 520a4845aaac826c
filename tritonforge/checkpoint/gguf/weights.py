"""The tensors of a Llama GGUF file under Hugging Face's names, shapes and row order, made one at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial

import numpy as np

from tritonforge.checkpoint.gguf.architecture import EMBEDDING, OUTPUT, LlamaForm
from tritonforge.checkpoint.gguf.reader import GgufFile, GgufTensor, can_dequantise, dequantise
from tritonforge.checkpoint.gguf.rotary import FREQUENCY_FACTORS
from tritonforge.errors import CheckpointError, CorruptFile, MissingWeight, UnsupportedModel
from tritonforge.formats.safetensors import DTYPES, Array, PlannedTensor

_CHUNK_ELEMENTS = 4_000_000  # dequantised at a time: 16 MB of float32
_UNUSED = (FREQUENCY_FACTORS, ".attn_rot_embd.weight")  # made again from config.json by whoever runs the model


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor of the Hugging Face checkpoint and where it comes from.

    Args:
        name: Its Hugging Face name.
        source: Its name in the GGUF file.
        shape: Its shape, the same in both.
        rotary_heads: For query and key rows, the number of heads that they make up; None for all others.
        optional: A bias that a file may lack in every layer, which then is zero: Hugging Face's switch for biases
            covers more projections than some models have biases for.
    """

    name: str
    source: str
    shape: tuple[int, ...]
    rotary_heads: int | None = None
    optional: bool = False


def plan_weights(file: GgufFile, form: LlamaForm, *, dtype: str) -> list[PlannedTensor]:
    """Every tensor of the checkpoint, ready to be written; all but bad values is found here, before any is made.

    Args:
        file: The file.
        form: The form of its model.
        dtype: What to store, in the spelling of safetensors: ``F16``, ``BF16`` or ``F32``.

    Raises:
        MissingWeight: The file lacks a tensor.
        CorruptFile: A tensor has another shape than the metadata implies.
        UnsupportedModel: A tensor has a storage type that cannot be read, or no place in a Llama model.
    """
    weights, planned = [], []
    # Not a list first: a damaged number of layers has to end at the first tensor that is missing.
    for weight in llama_weights(form):
        planned.append(_planned(file, weight, dtype))
        weights.append(weight)
    _refuse_unknown(file, {weight.source for weight in weights})
    return planned


def llama_weights(form: LlamaForm) -> Iterator[Weight]:
    """The tensors of a Llama model, in the order of the model. Pure."""
    yield Weight("model.embed_tokens.weight", EMBEDDING, (form.vocab_size, form.hidden_size))
    for layer in range(form.layers):
        yield from _layer_weights(form, f"model.layers.{layer}.", f"blk.{layer}.")
    yield Weight("model.norm.weight", "output_norm.weight", (form.hidden_size,))
    if not form.tied_embeddings:
        yield Weight("lm_head.weight", OUTPUT, (form.vocab_size, form.hidden_size))


def undo_rotary_order(rows: Array, heads: int) -> Array:
    """Query or key rows in Hugging Face's order. Pure.

    A GGUF Llama file interleaves the two halves of each head, so that a rotary pair lies side by side: a head's rows
    are 0, h/2, 1, h/2+1, … Hugging Face keeps the halves apart.

    Args:
        rows: ``[heads * head_size]`` or ``[heads * head_size, hidden]``.
        heads: Number of heads in `rows`: for keys, the key heads.
    """
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])  # [heads, head_size / 2, 2, ...]
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def _layer_weights(form: LlamaForm, name: str, source: str) -> Iterator[Weight]:
    hidden, middle = form.hidden_size, form.intermediate_size
    queries, keys = form.heads * form.head_size, form.kv_heads * form.head_size
    projections = (
        ("self_attn.q_proj", "attn_q", (queries, hidden), form.heads, form.attention_bias),
        ("self_attn.k_proj", "attn_k", (keys, hidden), form.kv_heads, form.attention_bias),
        ("self_attn.v_proj", "attn_v", (keys, hidden), None, form.attention_bias),
        ("self_attn.o_proj", "attn_output", (hidden, queries), None, form.attention_bias),
        ("mlp.gate_proj", "ffn_gate", (middle, hidden), None, form.mlp_bias),
        ("mlp.up_proj", "ffn_up", (middle, hidden), None, form.mlp_bias),
        ("mlp.down_proj", "ffn_down", (hidden, middle), None, form.mlp_bias),
    )
    yield Weight(f"{name}input_layernorm.weight", f"{source}attn_norm.weight", (hidden,))
    for target, stem, shape, rotary_heads, has_bias in projections:
        yield Weight(f"{name}{target}.weight", f"{source}{stem}.weight", shape, rotary_heads)
        if has_bias:
            yield Weight(f"{name}{target}.bias", f"{source}{stem}.bias", shape[:1], rotary_heads, optional=True)
    yield Weight(f"{name}post_attention_layernorm.weight", f"{source}ffn_norm.weight", (hidden,))


def _refuse_unknown(file: GgufFile, sources: Set[str]) -> None:
    """Refuse tensors that have no place in the model, and storage types that cannot be read."""
    unknown = sorted(name for name in file.tensors if name not in sources and not name.endswith(_UNUSED))
    kinds = sorted({tensor.quantisation for name, tensor in file.tensors.items() if name in sources})
    reasons = [f"its storage type {kind} cannot be read" for kind in kinds if not can_dequantise(kind)]
    if unknown:
        reasons.append(f"a Llama model has no place for {_some(unknown)}")
    if reasons:
        raise UnsupportedModel(str(file.path), reasons)


def _planned(file: GgufFile, weight: Weight, dtype: str) -> PlannedTensor:
    tensor = file.tensors.get(weight.source)
    if tensor is None:
        in_a_layer = weight.source.partition(".")[2].partition(".")[2]
        if not weight.optional or any(name.endswith(f".{in_a_layer}") for name in file.tensors):
            raise MissingWeight(weight.source, folder=file.path)
        return PlannedTensor(weight.name, dtype, weight.shape, partial(np.zeros, weight.shape, DTYPES[dtype]))
    if tensor.shape != weight.shape:
        raise CorruptFile(
            file.path,
            f"tensor {tensor.name!r} has shape {list(tensor.shape)}, its metadata say {list(weight.shape)}",
        )
    return PlannedTensor(weight.name, dtype, weight.shape, partial(_values, file, tensor, weight, dtype))


def _values(file: GgufFile, tensor: GgufTensor, weight: Weight, dtype: str) -> Array:
    """One tensor in the wanted type, dequantised some rows at a time so that float32 never holds all of it."""
    rows = len(tensor.blocks)
    values = np.empty((rows, math.prod(weight.shape) // rows), dtype=DTYPES[dtype])
    step = max(1, _CHUNK_ELEMENTS // values.shape[1])
    for start in range(0, rows, step):
        chunk = dequantise(tensor.blocks[start : start + step], tensor.quantisation)
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            values[start : start + step] = chunk
        if not np.isfinite(values[start : start + step]).all():
            raise _not_finite(file, tensor, chunk, dtype)
    values = values.reshape(weight.shape)
    return values if weight.rotary_heads is None else undo_rotary_order(values, weight.rotary_heads)


def _not_finite(file: GgufFile, tensor: GgufTensor, chunk: Array, dtype: str) -> CheckpointError:
    if not np.isfinite(chunk).all():
        return CorruptFile(file.path, f"tensor {tensor.name!r} holds values that are not finite numbers")
    largest = float(np.abs(chunk).max())
    return CheckpointError(
        f"{file.path}: tensor {tensor.name!r} holds {largest:g}, which {dtype} cannot",
        hint="import with --dtype bfloat16 or --dtype float32",
    )


def _some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
