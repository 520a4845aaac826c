"""Specifications that the tests start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonforge.errors import SpecInvalid
from tritonforge.spec.load import LoadedSpec, load_spec

TWO_VERSIONS = """\
schema: 1
repository: ./model_repository
models:
  - name: smollm2                        # public name; engine models: smollm2_engine_v1, smollm2_engine_v2
    checkpoint: ./checkpoints/SmolLM2-135M-Instruct
    versions:                            # one or several; the key is the numeric version
      1: {engine: {kind: openvino, precision: float16}}
      2: {engine: {kind: openvino, precision: int8}}
    traffic: {1: 100}                    # initial weights
    limits: {max_batch_size: 32, max_input_len: 2048, max_seq_len: 4096}
    serving:
      instance_group: [{kind: KIND_CPU, count: 1}]
      dynamic_batching: {max_queue_delay_microseconds: 1000}
    tests:                               # run at publish, before any traffic
      - {prompt: "The capital of France is", max_tokens: 8, contains: Paris}
"""

TENSORRT_LLM = """\
schema: 1
repository: ./model_repository
mount: /models
models:
  - name: llama
    checkpoint: ./llama
    versions:
      1:
        engine:
          kind: tensorrt_llm
          release: "0.16.0"
          precision: float16
          tensor_parallel: 1
          pipeline_parallel: 1
          plugins: {context_fmha: true, rotary_embedding: true, gpt_attention: auto, gemm: auto, remove_input_padding: true, paged_kv_cache: true}
          runtime: {batch_scheduler_policy: guaranteed_no_evict, kv_cache_free_gpu_mem_fraction: 0.9, enable_chunked_context: false}
          executor: docker
"""  # noqa: E501 - one line a block, as people write it


def load_text(folder: Path, text: str) -> LoadedSpec:
    """Write a forge.yaml and load it."""
    path = folder / "forge.yaml"
    path.write_text(text, encoding="utf-8")
    return load_spec(path)


def changed(old: str, new: str, text: str = TWO_VERSIONS) -> str:
    """The example with one piece of text replaced; the piece must be there once."""
    assert text.count(old) == 1, old
    return text.replace(old, new)


def refused(folder: Path, text: str) -> SpecInvalid:
    """Load a specification that must be refused."""
    with pytest.raises(SpecInvalid) as caught:
        load_text(folder, text)
    return caught.value
