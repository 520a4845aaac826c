"""Specifications with a TensorRT-LLM engine that the tests change."""

from __future__ import annotations

from pathlib import Path

from tests.spec.examples import TENSORRT_LLM, changed, load_text
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

ENGINE = "models[0].versions.1.engine"
EXECUTOR = "          executor: docker\n"
PLUGINS = "remove_input_padding: true, paged_kv_cache: true}"
PAGED = "remove_input_padding: true, paged_kv_cache: true, paged_context_fmha: true}"
RANGES = "          activation_ranges: ./ranges.json\n"


def block(more: str = "", *changes: tuple[str, str], limits: str = "") -> str:
    """The example with lines added to the engine's block, pieces changed, and limits of the model."""
    text = changed(EXECUTOR, f"{EXECUTOR}{more}", TENSORRT_LLM)
    for old, new in changes:
        text = changed(old, new, text)
    return text + (f"    limits: {limits}\n" if limits else "")


def engine(tmp_path: Path, text: str) -> TensorRtLlmEngineSpec:
    loaded = load_text(tmp_path, text).spec.models[0].versions[1].engine
    assert isinstance(loaded, TensorRtLlmEngineSpec)
    return loaded


def line(key: str, value: str) -> str:
    return f"          {key}: {value}\n"


def everything() -> str:
    more = (
        "          kv_cache: fp8\n"
        f"{RANGES}"
        "          embedding_sharding: vocab\n"
        "          gpus: [2, 3]\n"
        "          gpu_architecture: sm_90\n"
        "          image: nvcr.io/nvidia/tritonserver:24.12-trtllm-python-py3\n"
        "          workers: 2\n"
        "          multiple_profiles: true\n"
        "          options: {tokens_per_block: 64, reduce_fusion: enable, strip_plan: true, lora_dir: [a, b]}\n"
    )
    return block(
        more,
        ("tensor_parallel: 1", "tensor_parallel: 2"),
        ("precision: float16", "precision: fp8"),
        (PLUGINS, PAGED),
        ("enable_chunked_context: false", "enable_chunked_context: true"),
        limits="{max_num_tokens: 2048, max_beam_width: 4, max_input_len: 4000, max_seq_len: 8000}",
    )
