"""engine.json, the settings beside an engine's graph, as a value. Pure but for the reading of the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUPPORTED_SCHEMA = 1
GIB_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How one engine is to be loaded and what it accepts.

    Args:
        precision: Of the weights; for the log only.
        fused_attention: False when the graph has attention written out. Such an engine runs one request at a time,
            without a paged cache, and gives no log probabilities per token: it exists to be measured.
        num_threads: CPU threads; None leaves it to the library.
        kv_cache_precision: ``f32``, ``f16`` or ``u8``.
        kv_cache_bytes: Memory of the KV cache.
        kv_cache_blocks: The same in the blocks of the paged cache.
        kv_cache_tokens: Tokens that it holds over all requests.
        enable_prefix_caching: Keep the cache of finished prompts for prompts that begin alike.
        max_num_batched_tokens: Most tokens computed in one step over all requests.
        max_batch_size: Most requests computed at a time; more wait.
        max_input_len: Most tokens of a prompt.
        max_seq_len: Most tokens of a prompt and its answer.
        vocab_size: Token ids are 0 to vocab_size - 1.
    """

    precision: str
    fused_attention: bool
    num_threads: int | None
    kv_cache_precision: str
    kv_cache_bytes: int
    kv_cache_blocks: int
    kv_cache_tokens: int
    enable_prefix_caching: bool
    max_num_batched_tokens: int
    max_batch_size: int
    max_input_len: int
    max_seq_len: int
    vocab_size: int

    @property
    def block_tokens(self) -> int:
        """Tokens in one block of the paged cache."""
        return self.kv_cache_tokens // self.kv_cache_blocks

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> EngineSettings:
        """Read the content of engine.json; unknown keys are ignored.

        Raises:
            ValueError: It is of a newer kind than this runtime.
            KeyError: A key is missing.
        """
        if values["schema_version"] > SUPPORTED_SCHEMA or values["kind"] != "openvino":
            raise ValueError(
                f"engine.json has kind {values['kind']!r}, schema_version {values['schema_version']}; "
                f"expected kind 'openvino', schema_version {SUPPORTED_SCHEMA} or less"
            )
        limits = values["limits"]
        return cls(
            precision=values["precision"],
            fused_attention=values["plugins"]["context_fmha"],
            num_threads=values["num_threads"],
            kv_cache_precision=values["kv_cache_precision"],
            kv_cache_bytes=values["kv_cache_bytes"],
            kv_cache_blocks=values["kv_cache_blocks"],
            kv_cache_tokens=values["kv_cache_tokens"],
            enable_prefix_caching=values["enable_prefix_caching"],
            max_num_batched_tokens=values["max_num_batched_tokens"],
            max_batch_size=limits["max_batch_size"],
            max_input_len=limits["max_input_len"],
            max_seq_len=limits["max_seq_len"],
            vocab_size=values["vocab_size"],
        )

    @classmethod
    def read(cls, folder: Path) -> EngineSettings:
        """Read engine.json of a version folder."""
        return cls.from_json(json.loads((folder / "engine.json").read_text()))

    def __str__(self) -> str:
        attention = "" if self.fused_attention else ", attention written out: one request at a time"
        threads = "all" if self.num_threads is None else self.num_threads
        return (
            f"{self.precision} weights, {self.kv_cache_precision} KV cache of {self.kv_cache_bytes / GIB_BYTES:g} GiB "
            f"({self.kv_cache_tokens} tokens), {threads} threads, at most {self.max_batch_size} requests at a time, "
            f"{self.max_input_len} prompt tokens, {self.max_seq_len} tokens in all{attention}"
        )
