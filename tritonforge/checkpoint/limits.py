"""What cannot be converted, or not for the engine or the release that was asked for: refused before any work."""

from __future__ import annotations

from tritonforge.checkpoint.advice import advice
from tritonforge.checkpoint.families.base import ENGINES, OPENVINO
from tritonforge.checkpoint.options import DEFAULTS, WRITTEN, ConvertOptions
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.errors import UnsupportedModel
from tritonforge.formats.rotary import LINEAR
from tritonforge.formats.trtllm import FLOAT_TYPES, TrtllmConfig
from tritonforge.releases.checkpoint_rules import Facts, Verdict, judge
from tritonforge.releases.table import find_release


def check_options(source: SourceCheckpoint, options: ConvertOptions, engine: str) -> tuple[str, ...]:
    """Refuse what the engine or the release cannot take.

    Args:
        source: The checkpoint.
        options: What was chosen.
        engine: tensorrt_llm or openvino.

    Returns:
        What a user should know although nothing is refused, one sentence each.

    Raises:
        UnsupportedModel: With every reason found.
        UnknownRelease: There is no such release.
    """
    subject = f"{source.folder} ({source.architecture})"
    reasons = tuple(source.engine_reasons.get(engine, ()))
    if engine == OPENVINO:
        _refuse(f"{subject} on {engine}", source, (*reasons, *_embedded_reasons(options)))
        return ()
    verdict = _verdict(source, options)
    if reasons:
        _refuse(f"{subject} on {engine}", source, (*reasons, *verdict.refusals))
    if verdict.refusals:
        hint = advice(source.config, options, lambda other: not _verdict(source, other).refusals)
        raise UnsupportedModel(f"{subject} on TensorRT-LLM {options.release}", verdict.refusals, hint=hint)
    return verdict.notes


def _verdict(source: SourceCheckpoint, options: ConvertOptions) -> Verdict:
    """What the release has to say, after what can be said without one."""
    found = judge(find_release(options.release), _facts(source, options), _values(source.config, options))
    return Verdict((*_contradictions(options), *found.refusals), (*_notes(options), *found.notes))


def _contradictions(options: ConvertOptions) -> tuple[str, ...]:
    if options.embedding_sharding == DEFAULTS.embedding_sharding or options.tp > 1:
        return ()
    return (f"the embedding is shared by {options.embedding_sharding!r} while tp is 1; expected ranks that share it",)


def _notes(options: ConvertOptions) -> tuple[str, ...]:
    if options.kv_cache != "fp8" or options.activation_ranges is not None:
        return ()
    option, key = WRITTEN["activation_ranges"]
    return (
        f"every scale of the fp8 KV cache is 1, because there are no activation ranges ({option}, {key} in "
        f"forge.yaml) to take them from",
    )


def _refuse(subject: str, source: SourceCheckpoint, reasons: tuple[str, ...]) -> None:
    """Refuse if there are reasons, and point at the other engine if that can serve the checkpoint."""
    if not reasons:
        return
    others = [engine for engine in ENGINES if not source.engine_reasons.get(engine)]
    raise UnsupportedModel(subject, reasons, hint=f"the engine {others[0]} can serve it" if others else None)


def _embedded_reasons(options: ConvertOptions) -> tuple[str, ...]:
    reasons = []
    if (options.tp, options.pp, options.embedding_sharding) != (1, 1, DEFAULTS.embedding_sharding):
        reasons.append("the embedded engine runs in one process: expected 1 rank, and an embedding that is not shared")
    if options.is_quantised:
        reasons.append("the embedded engine rounds weights itself: expected a checkpoint of floats")
    return tuple(reasons)


def _facts(source: SourceCheckpoint, options: ConvertOptions) -> Facts:
    """What the rules of releases ask for."""
    config, tp, pp = source.config, options.tp, options.pp
    scaling, kv_heads = config.rotary_scaling, config.num_key_value_heads
    return {
        "family": source.family,
        "chatglm_version": config.chatglm.chatglm_version if config.chatglm else None,
        "attention_bias": config.attn_bias,
        "own_head_size": config.head_size * config.num_attention_heads != config.hidden_size,
        "rotary": scaling.kind if scaling else "none",
        "rotary_type_key": scaling is not None and "type" in scaling.kind_keys,
        "rotary_factor_above_1": scaling is not None and scaling.factor > 1,
        "tp_above_1": tp > 1,
        "pp_above_1": pp > 1,
        "heads_divide": config.num_attention_heads % tp == 0,
        "kv_heads_divide": kv_heads % tp == 0 or tp % kv_heads == 0,
        "kv_heads_repeated": kv_heads < tp,
        "width_divides": config.intermediate_size % tp == 0,
        "hidden_divides": config.hidden_size % tp == 0,
        "vocab_divides": config.vocab_size % tp == 0,
        "layers_divide": config.num_hidden_layers % pp == 0,
        "stages_filled": config.num_hidden_layers >= pp,
        "embedding_sharding": options.embedding_sharding,
        "precision": options.precision if options.precision not in FLOAT_TYPES else None,
        "kv_cache": options.kv_cache,
        "tied": config.tied_embeddings,
    }


def _values(config: TrtllmConfig, options: ConvertOptions) -> dict[str, object]:
    """What stands in the texts of the rules."""
    scaling = config.rotary_scaling
    return {
        "tp": options.tp,
        "pp": options.pp,
        "heads": config.num_attention_heads,
        "kv_heads": config.num_key_value_heads,
        "width": config.intermediate_size,
        "hidden": config.hidden_size,
        "vocab": config.vocab_size,
        "layers": config.num_hidden_layers,
        "kept_layers": config.num_hidden_layers // options.pp * options.pp,
        "factor": f"{scaling.factor:g}" if scaling is not None and scaling.kind == LINEAR else None,
    }
