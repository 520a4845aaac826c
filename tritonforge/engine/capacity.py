"""How many tokens a KV cache holds, and whether that is enough. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tritonforge.errors import BuildError
from tritonforge.formats.trtllm import TrtllmConfig
from tritonforge.spec.limits import LimitsSpec

GIB_BYTES = 2**30
BLOCK_TOKENS = 32  # OpenVINO's paged attention on a CPU keeps the cache in blocks of this many tokens (measured)
_VALUE_BYTES = {"f32": 4, "f16": 2, "u8": 1}
_SCALE_BYTES = 8  # u8 keeps a float32 scale and zero point with every head of every token


@dataclass(frozen=True, slots=True)
class KvCapacity:
    """The KV cache of one engine.

    Args:
        bytes_per_token: Keys and values of all layers for one token.
        blocks: Blocks of BLOCK_TOKENS tokens that the memory holds.
    """

    bytes_per_token: int
    blocks: int

    @property
    def tokens(self) -> int:
        """Tokens that the cache holds, over all requests."""
        return self.blocks * BLOCK_TOKENS


def kv_capacity(config: TrtllmConfig, *, kv_cache_precision: str, kv_cache_bytes: int) -> KvCapacity:
    """What a cache of `kv_cache_bytes` holds for this model.

    Args:
        config: The model.
        kv_cache_precision: ``f32``, ``f16`` or ``u8``.
        kv_cache_bytes: Memory for the cache.
    """
    scales = _SCALE_BYTES if kv_cache_precision == "u8" else 0
    head_bytes = config.head_size * _VALUE_BYTES[kv_cache_precision] + scales
    bytes_per_token = 2 * config.num_hidden_layers * config.num_key_value_heads * head_bytes
    return KvCapacity(bytes_per_token, kv_cache_bytes // (bytes_per_token * BLOCK_TOKENS))


def check_positions(config: TrtllmConfig, limits: LimitsSpec) -> None:
    """Refuse sequences beyond the positions that the model knows: what it says there is no answer.

    Raises:
        BuildError: max_seq_len is beyond them.
    """
    positions = _known_positions(config)
    if limits.max_seq_len > positions:
        raise BuildError(
            f"limits.max_seq_len is {limits.max_seq_len}, expected at most {positions}: "
            f"the model was trained for {positions} positions",
            hint=f"set limits.max_seq_len to {positions} or less (and limits.max_input_len below it)",
        )


def check_limits(config: TrtllmConfig, capacity: KvCapacity, limits: LimitsSpec) -> None:
    """Refuse limits that the model or the cache can never meet.

    Raises:
        BuildError: max_seq_len is beyond the positions that the model knows, or one sequence of that length does not
            fit the cache.
    """
    check_positions(config, limits)
    if capacity.tokens < limits.max_seq_len:
        blocks = math.ceil(limits.max_seq_len / BLOCK_TOKENS)
        needed_gib = math.ceil(blocks * BLOCK_TOKENS * capacity.bytes_per_token / GIB_BYTES * 1000) / 1000
        raise BuildError(
            f"runtime.kv_cache_gib holds {capacity.tokens} tokens ({capacity.bytes_per_token} bytes each), expected "
            f"at least limits.max_seq_len = {limits.max_seq_len}, which needs {needed_gib:g} GiB",
            hint=f"set engine.runtime.kv_cache_gib to {needed_gib:g} or more, or lower limits.max_seq_len",
        )


def _known_positions(config: TrtllmConfig) -> int:
    scaling = config.rotary_scaling
    if scaling is not None and scaling.kind == "linear":
        return int(config.max_position_embeddings * scaling.factor)  # each trained position holds `factor` of them
    return config.max_position_embeddings
