"""Folders as trtllm-build writes them, with a few bytes for each rank: stand-ins that no backend could load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tritonforge.artifacts import EngineArtifact

VOCAB_SIZE = 64


def write_trtllm_engine(
    folder: Path,
    release: str,
    *,
    ranks: int = 1,
    vocab_size: int = VOCAB_SIZE,
    paged_context_fmha: bool = False,
    **limits: int,
) -> EngineArtifact:
    """Write the folder of an engine that a release would have built.

    Args:
        folder: Made when it is not there.
        release: TensorRT-LLM release.
        ranks: Tensor-parallel ranks.
        vocab_size: Token ids that it accepts.
        paged_context_fmha: Whether it was built with it.
        limits: Limits of its build_config that differ from the usual ones here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = {
        "architecture": "LlamaForCausalLM",
        "dtype": "float16",
        "vocab_size": vocab_size,
        "mapping": {"world_size": ranks, "tp_size": ranks, "pp_size": 1},
    }
    build: dict[str, Any] = {
        "max_batch_size": 8,
        "max_input_len": 1024,
        "max_seq_len": 2048,
        "max_num_tokens": 8192,
        "max_beam_width": 1,
        "plugin_config": {"use_paged_context_fmha": paged_context_fmha},
    }
    config = {"version": release, "pretrained_config": model, "build_config": build | limits}
    (folder / "config.json").write_text(json.dumps(config))
    names = [f"rank{rank}.engine" for rank in range(ranks)]
    for name in names:
        (folder / name).write_bytes(b"a stand-in, not an engine")
    return EngineArtifact(folder, "tensorrt_llm", ("config.json", *names), vocab_size, weights_bytes=0)
