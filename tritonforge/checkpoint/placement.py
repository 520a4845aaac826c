"""Where each tensor of a TensorRT-LLM checkpoint goes: its split over tensor-parallel ranks, its pipeline stages. Pure.

What cannot be divided is refused by `tritonforge.checkpoint.limits` before anything here is asked.
"""

from __future__ import annotations

import re
from itertools import pairwise

from tritonforge.checkpoint.split import Group, Split
from tritonforge.formats.trtllm import TrtllmConfig

EMBEDDING = "transformer.vocab_embedding.weight"
HEAD = "lm_head.weight"
FINAL_NORM = "transformer.ln_f.weight"
_LAYER = re.compile(r"transformer\.layers\.(?P<number>\d+)\.(?P<place>.+)")
_WHOLE = Split()
_ROWS = Split(axis=0)
_COLUMNS = Split(axis=1)


def layer_of(name: str) -> int | None:
    """Number of the layer that a tensor belongs to, None for one that belongs to none."""
    found = _LAYER.fullmatch(name)
    return None if found is None else int(found["number"])


def name_in_layer(name: str) -> str:
    """What a tensor is called within its layer, ``attention.qkv.weight``; of one outside the layers the whole name."""
    found = _LAYER.fullmatch(name)
    return name if found is None else found["place"]


def local_name(name: str, first_layer: int) -> str:
    """The name of a tensor in a rank whose first layer is `first_layer`: layers count from 0 there."""
    found = _LAYER.fullmatch(name)
    if found is None:
        return name
    return f"transformer.layers.{int(found['number']) - first_layer}.{found['place']}"


def split_of(name: str, config: TrtllmConfig) -> Split:
    """How tensor-parallel ranks share a tensor of floats.

    Args:
        name: Its name, with or without the layer in front.
        config: The target's configuration; its ranks and its embedding sharding count.
    """
    if name == EMBEDDING:
        return embedding_split(config)
    if name == HEAD:
        return Split(axis=0, padded=config.chatglm is None)
    match name_in_layer(name).split("."):
        case ["attention", "qkv", _]:
            return Split(axis=0, groups=qkv_groups(config))
        case ["mlp", "fc", _]:
            return Split(axis=0, groups=fc_groups(config))
        case ["mlp", "gate", _]:
            return _ROWS
        case ["attention" | "mlp", "dense" | "proj", "weight"]:
            return _COLUMNS  # the bias is added once, after the sum over ranks, so every rank has it
    return _WHOLE


def embedding_split(config: TrtllmConfig) -> Split:
    """How ranks share the embedding."""
    if not config.use_parallel_embedding:
        return _WHOLE
    return Split(axis=0, padded=True) if config.embedding_sharding_dim == 0 else _COLUMNS


def qkv_groups(config: TrtllmConfig) -> tuple[Group, Group, Group]:
    """Rows of query, key and value. Where there are fewer key and value heads than ranks, they are repeated."""
    size, kv_heads = config.head_size, config.num_key_value_heads
    repeats = max(1, config.tp_size // kv_heads)
    kv = Group(kv_heads * size, repeats=repeats, block=size)
    return Group(config.num_attention_heads * size), kv, kv


def fc_groups(config: TrtllmConfig) -> tuple[Group, ...]:
    """Rows of ``mlp.fc``: one group in Llama, two halves where the other half is fused into it (ChatGLM)."""
    group = Group(config.intermediate_size)
    return (group,) if config.chatglm is None else (group, group)


def stage_layers(layers: int, pp: int) -> tuple[range, ...]:
    """The layers of each pipeline stage; the first ``layers % pp`` stages have one more than the others."""
    starts = [stage * (layers // pp) + min(stage, layers % pp) for stage in range(pp + 1)]
    return tuple(range(start, stop) for start, stop in pairwise(starts))
