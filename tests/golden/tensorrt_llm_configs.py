"""Renders the engine model's config.pbtxt of the `tensorrtllm` backend for several releases.

`python -m tests.golden.tensorrt_llm_configs` writes them beside this file, into `tensorrt_llm/`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.trtllm_engines import write_trtllm_engine
from tritonforge.repository.render import render_engine
from tritonforge.spec.model import ModelSpec

FOLDER = Path(__file__).parent / "tensorrt_llm"
# Settings beside the release, so that every part of the template is in one of the files.
RELEASES: Mapping[str, Mapping[str, Any]] = {
    "0.9.0": {},
    "0.10.0": {"runtime": {"kv_cache_free_gpu_mem_fraction": 0.45}},
    "0.11.0": {"runtime": {"batch_scheduler_policy": "max_utilization"}},
    "0.12.0": {"tensor_parallel": 2, "gpus": [2, 3]},
    "0.13.0": {"runtime": {"parameters": {"max_attention_window_size": [1024, 2048]}}},
    "0.14.0": {"runtime": {"parameters": {"max_tokens_in_paged_kv_cache": 20000, "multi_block_mode": False}}},
    "0.15.0": {},
    "0.16.0": {"runtime": {"enable_chunked_context": True}, "plugins": {"paged_context_fmha": True}},
    "0.17.0": {"runtime": {"parameters": {"gpu_weights_percent": 0.5}}},
    "0.18.2": {"runtime": {"parameters": {"cuda_graph_mode": True, "cuda_graph_cache_size": 4}}},
    "0.19.0": {"plugins": {"paged_context_fmha": True}},
    "0.21.0": {"runtime": {"parameters": {"enable_kv_cache_reuse": False}}, "plugins": {"paged_context_fmha": True}},
    "1.2.1": {"tensor_parallel": 4},
}
SERVING: Mapping[str, Mapping[str, Any]] = {
    "0.9.0": {"dynamic_batching": {"max_queue_delay_microseconds": 1000, "preferred_batch_size": [4, 8]}},
    "0.12.0": {"dynamic_batching": {"default_queue_policy": {"max_queue_size": 64}}},
    "0.14.0": {"instance_group": [{"kind": "KIND_GPU", "gpus": [1]}]},
}


def render_config(release: str, scratch: Path) -> str:
    """The config.pbtxt of one release.

    Args:
        release: One of `RELEASES`.
        scratch: Empty folder for the stand-in engine and what is rendered.
    """
    engine = {"kind": "tensorrt_llm", "release": release, **RELEASES[release]}
    version = {"engine": engine, "serving": SERVING.get(release, {})}
    model = ModelSpec.model_validate(
        {"name": "llama", "checkpoint": "./checkpoint", "versions": {3: version}, "limits": {"max_batch_size": 8}}
    )
    built = write_trtllm_engine(
        scratch / "engine",
        release,
        ranks=engine.get("tensor_parallel", 1),
        paged_context_fmha=engine.get("plugins", {}).get("paged_context_fmha", False),
    )
    folder = render_engine(model.resolved(3), built, scratch, mount="/models")
    return (folder / "config.pbtxt").read_text()


def main() -> None:
    """Write every golden file."""
    FOLDER.mkdir(exist_ok=True)
    for release in RELEASES:
        with tempfile.TemporaryDirectory() as scratch:
            (FOLDER / f"{release}.pbtxt").write_text(render_config(release, Path(scratch)))


if __name__ == "__main__":
    main()
