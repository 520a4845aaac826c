"""Embedded engines from small checkpoints: built by our own stages, run directly on OpenVINO's CPU device."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino as ov

from tritonforge.artifacts import EngineArtifact
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.engine.build import build
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.openvino import OpenVinoEngineSpec

SMALL_LIMITS = {"max_batch_size": 4, "max_input_len": 64, "max_seq_len": 128}
# One thread: the machine is shared by the tests that run beside. Activations and cache at full precision.
EXACT = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}


def small_spec(
    *, precision: str = "float32", fused_attention: bool = True, fused_rotary: bool = True, **runtime: object
) -> OpenVinoEngineSpec:
    """An engine specification with one thread and a cache of a few MiB."""
    return OpenVinoEngineSpec.model_validate(
        {
            "kind": "openvino",
            "precision": precision,
            "plugins": {"context_fmha": fused_attention, "rotary_embedding": fused_rotary},
            "runtime": {"num_threads": 1, "kv_cache_gib": 0.01, **runtime},
        }
    )


def build_small(
    source: Path, out: Path, *, spec: OpenVinoEngineSpec | None = None, dtype: str = "float32", **limits: int
) -> EngineArtifact:
    """Convert a Hugging Face folder and build its engine in `out`, with what lies between beside it."""
    checkpoint = convert(
        source, out.with_name(f"{out.name}-checkpoint"), ConvertOptions(dtype=dtype), for_engine="openvino"
    )
    return build(spec or small_spec(), checkpoint, out, limits=LimitsSpec(**{**SMALL_LIMITS, **limits}))


def compile_graph(engine: Path) -> ov.CompiledModel:
    """The engine's graph as a plain stateful model."""
    return ov.Core().compile_model(engine / "openvino_model.xml", "CPU", EXACT)


def logits(engine: Path, ids: Sequence[int], *, prefill: int | None = None) -> np.ndarray:
    """Logits [tokens, vocabulary] of a token sequence.

    Args:
        prefill: Tokens computed at once; the rest one by one over the cache. None for all at once.
    """
    request = compile_graph(engine).create_infer_request()
    cuts = [len(ids) if prefill is None else prefill, *([1] * (0 if prefill is None else len(ids) - prefill))]
    parts = []
    done = 0
    for count in cuts:
        inputs = {
            "input_ids": np.array([ids[done : done + count]], dtype=np.int64),
            "attention_mask": np.ones((1, done + count), dtype=np.int64),
            "position_ids": np.arange(done, done + count, dtype=np.int64)[None],
            "beam_idx": np.zeros(1, dtype=np.int32),
        }
        parts.append(request.infer(inputs)["logits"][0].copy())
        done += count
    return np.concatenate(parts)


def node_counts(model: ov.CompiledModel) -> Counter[str]:
    """How many nodes of each type the plugin executes."""
    return Counter(str(node.get_rt_info()["layerType"].value) for node in model.get_runtime_model().get_ops())
