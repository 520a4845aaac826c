"""Specifications whose command lines are kept as goldens, and how those files are written.

``python -m tests.engine.tensorrt_llm.argv_cases`` writes the goldens anew; read the difference before you commit it.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from tritonforge.engine.tensorrt_llm.argv import build_argv
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

GOLDENS = Path(__file__).parent / "argv"
RELEASES = (
    "0.9.0", "0.10.0", "0.11.0", "0.12.0", "0.13.0", "0.14.0", "0.15.0", "0.16.0", "0.17.0", "0.19.0", "0.20.0",
    "1.0.0", "1.2.1",
)  # fmt: skip
CHECKPOINT, OUT = "/tritonforge/checkpoint", "/tritonforge/engine"
# Name → engine block, limits, float type of the checkpoint.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "default": ({}, {}, "float16"),
    "everything on": (
        {
            "plugins": {"paged_context_fmha": True, "gemm": "float16", "gpt_attention": "float16"},
            "runtime": {"enable_chunked_context": True},
            "multiple_profiles": True,
            "workers": 2,
            "tensor_parallel": 2,
            "options": {"tokens_per_block": 32, "gather_generation_logits": True, "profiling_verbosity": "detailed"},
        },
        {
            "max_batch_size": 64,
            "max_input_len": 16384,
            "max_seq_len": 32768,
            "max_num_tokens": 4096,
            "max_beam_width": 4,
        },
        "float16",
    ),
    "unfused": (
        {
            "precision": "float32",
            "plugins": {
                "context_fmha": False,
                "rotary_embedding": False,
                "gpt_attention": "disable",
                "gemm": "disable",
                "remove_input_padding": False,
                "paged_kv_cache": False,
            },
        },
        {"max_batch_size": 4},
        "float32",
    ),
    "tp2 int4_awq": (
        {"precision": "int4_awq", "group_size": 64, "tensor_parallel": 2, "workers": 2},
        {},
        "bfloat16",
    ),
    "int8_weight_only, long prompts": (
        {"precision": "int8_weight_only"},
        {"max_batch_size": 8, "max_input_len": 12288, "max_seq_len": 16384},
        "float16",
    ),
    "pp2 fp8 with an fp8 KV cache in pages": (
        {
            "precision": "fp8",
            "kv_cache": "fp8",
            "activation_ranges": "./ranges.json",
            "pipeline_parallel": 2,
            "plugins": {"paged_context_fmha": True},
        },
        {},
        "bfloat16",
    ),
}


def argv_of(release: str, case: str) -> tuple[str, ...]:
    """The command line of a case."""
    engine, limits, dtype = CASES[case]
    spec = TensorRtLlmEngineSpec.model_validate({"kind": "tensorrt_llm", "release": release, **engine})
    return build_argv(spec, LimitsSpec.model_validate(limits), dtype=dtype, checkpoint=CHECKPOINT, out=OUT)


def written(release: str) -> str:
    """The golden of a release: every case under its name, an option a line."""
    blocks = []
    for case in CASES:
        words = " ".join(shlex.quote(word) for word in argv_of(release, case))
        blocks.append(f"# {case}\n" + words.replace(" --", " \\\n  --") + "\n")
    return "\n".join(blocks)


def read(release: str) -> dict[str, tuple[str, ...]]:
    """Case → command line of a golden."""
    blocks = (GOLDENS / f"{release}.sh").read_text(encoding="utf-8").split("# ")[1:]
    pairs = (block.split("\n", 1) for block in blocks)
    return {case: tuple(shlex.split(words.replace("\\\n", ""))) for case, words in pairs}


if __name__ == "__main__":
    GOLDENS.mkdir(exist_ok=True)
    for release in RELEASES:
        (GOLDENS / f"{release}.sh").write_text(written(release), encoding="utf-8")
