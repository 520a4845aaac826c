"""Stage engine: TensorRT-LLM checkpoint → folder with the embedded engine's graph, weights and settings."""

from __future__ import annotations

import json
from pathlib import Path

from tritonforge.artifacts import CheckpointArtifact, EngineArtifact
from tritonforge.engine.capacity import KvCapacity, check_limits, kv_capacity
from tritonforge.engine.writing import naming
from tritonforge.errors import ToolMissing, UnsupportedModel
from tritonforge.events import OnEvent, ignore
from tritonforge.formats.safetensors import TensorFolder
from tritonforge.formats.trtllm import TrtllmConfig, rank_file_name
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.openvino import OpenVinoEngineSpec
from tritonforge.staging import staged_folder

SCHEMA_VERSION = 1
ENGINE_JSON = "engine.json"


def build(
    spec: OpenVinoEngineSpec,
    checkpoint: CheckpointArtifact,
    out: Path,
    *,
    limits: LimitsSpec,
    on_event: OnEvent = ignore,
) -> EngineArtifact:
    """Compile the embedded engine.

    The files appear in `out` together, by a rename; whatever was there before is replaced. A failed build leaves
    nothing behind.

    Args:
        spec: Precision, fused parts and settings of the runtime.
        checkpoint: One rank of a TensorRT-LLM checkpoint.
        out: Folder to make.
        limits: Limits that the engine is to keep.
        on_event: Called with one line per step.

    Raises:
        ToolMissing: OpenVINO is not installed.
        UnsupportedModel: The checkpoint has a part that the graph cannot express.
        BuildError: The limits do not fit the model or the KV cache, or a file cannot be written.
        MissingWeight, ShapeMismatch: The rank file does not hold what its config.json implies.
    """
    config = checkpoint.config
    check_supported(config, subject=str(checkpoint.path))
    capacity = kv_capacity(
        config, kv_cache_precision=spec.kv_cache_precision, kv_cache_bytes=spec.runtime.kv_cache_bytes
    )
    check_limits(config, capacity, limits)
    on_event(f"building the {spec.precision} graph of {config.num_hidden_layers} layers")
    with naming(out), staged_folder(out, replace=True) as folder:
        _write_graph(spec, config, checkpoint.path, folder)
        settings = engine_settings(spec, config, capacity, limits)
        with naming(folder / ENGINE_JSON):
            (folder / ENGINE_JSON).write_text(json.dumps(settings, indent=2) + "\n")
    return _artifact(out, config)


def check_supported(config: TrtllmConfig, *, subject: str) -> None:
    """Refuse, with every reason, a checkpoint that the graph cannot express."""
    reasons = []
    if config.tp_size != 1 or config.pp_size != 1:
        reasons.append(f"it is split into {config.tp_size} × {config.pp_size} ranks; the embedded engine takes one")
    if config.quant_algo is not None or config.kv_cache_quant_algo is not None:
        algorithm = config.quant_algo or config.kv_cache_quant_algo
        reasons.append(f"it is quantised with {algorithm}; the embedded engine quantises float checkpoints itself")
    glm = config.chatglm
    if glm is not None and not glm.rmsnorm:
        reasons.append("rmsnorm is false; the graph has RMSNorm only")
    if glm is not None and glm.apply_residual_connection_post_layernorm:
        reasons.append("apply_residual_connection_post_layernorm is true; the graph takes the residual before the norm")
    if reasons:
        raise UnsupportedModel(subject, reasons, hint="convert the checkpoint for one rank, without quantisation")


def engine_settings(
    spec: OpenVinoEngineSpec, config: TrtllmConfig, capacity: KvCapacity, limits: LimitsSpec
) -> dict[str, object]:
    """What engine.json holds: all that the runtime has to know beside the graph. Pure."""
    runtime = spec.runtime
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": spec.kind,
        "precision": spec.precision,
        "plugins": {
            "context_fmha": spec.plugins.context_fmha,
            "rotary_embedding": spec.plugins.rotary_embedding,
        },
        "num_threads": runtime.num_threads,
        "kv_cache_precision": spec.kv_cache_precision,
        "kv_cache_bytes": runtime.kv_cache_bytes,
        "kv_cache_blocks": capacity.blocks,
        "kv_cache_tokens": capacity.tokens,
        "enable_prefix_caching": runtime.enable_prefix_caching,
        "max_num_batched_tokens": runtime.max_num_batched_tokens,
        "limits": {
            "max_batch_size": limits.max_batch_size,
            "max_input_len": limits.max_input_len,
            "max_seq_len": limits.max_seq_len,
        },
        "vocab_size": config.vocab_size,
    }


def _write_graph(spec: OpenVinoEngineSpec, config: TrtllmConfig, checkpoint: Path, folder: Path) -> None:
    try:
        from tritonforge.engine.openvino.graph import GraphOptions, write_graph  # openvino is an extra, and heavy
    except ImportError as error:
        raise ToolMissing(
            "OpenVINO", looked_in="this Python environment", hint='pip install "tritonforge[embedded]"'
        ) from error
    options = GraphOptions(
        precision=spec.precision,
        fused_attention=spec.plugins.context_fmha,
        fused_rotary=spec.plugins.rotary_embedding,
    )
    tensors = TensorFolder.open_file(checkpoint / rank_file_name(0))
    write_graph(config, tensors, folder, options=options)


def _artifact(out: Path, config: TrtllmConfig) -> EngineArtifact:
    files = tuple(sorted(path.name for path in out.iterdir()))
    weights_bytes = sum(path.stat().st_size for path in out.glob("*.bin"))
    return EngineArtifact(
        path=out, kind="openvino", files=files, vocab_size=config.vocab_size, weights_bytes=weights_bytes
    )
