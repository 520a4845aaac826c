"""What would do instead of a conversion that is refused, found by trying it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tritonforge.checkpoint.options import DEFAULTS, WRITTEN, ConvertOptions
from tritonforge.formats.trtllm import TrtllmConfig
from tritonforge.releases.table import all_releases, spans

Allows = Callable[[ConvertOptions], bool]


def advice(config: TrtllmConfig, options: ConvertOptions, allows: Allows) -> str | None:
    """What to choose instead, each way by itself; None when no single change helps.

    Args:
        config: The source's configuration.
        options: What was refused.
        allows: Whether other options would be taken.
    """
    ways = [*_ranks(config, options, allows), *_sharding(options, allows), *_release(options, allows)]
    return f"choose {', or '.join(ways)}" if ways else None


def _ranks(config: TrtllmConfig, options: ConvertOptions, allows: Allows) -> Iterable[str]:
    """Another number of tensor-parallel ranks, or of stages, or of both where neither is enough."""
    counts, stages = range(1, config.num_attention_heads + 1), range(1, config.num_hidden_layers + 1)
    tps = [tp for tp in counts if allows(replace(options, tp=tp))]
    pps = [pp for pp in stages if allows(replace(options, pp=pp))]
    if tps or pps:
        yield from (_values(name, values) for name, values in (("tp", tps), ("pp", pps)) if values)
        return
    tps = [tp for tp in counts if allows(replace(options, tp=tp, pp=1))]
    pps = [pp for pp in stages if tps and allows(replace(options, tp=tps[0], pp=pp))]
    if tps:
        yield f"{_values('tp', tps)} and {_values('pp', pps)}"


def _sharding(options: ConvertOptions, allows: Allows) -> Iterable[str]:
    none = DEFAULTS.embedding_sharding
    if options.embedding_sharding != none and allows(replace(options, embedding_sharding=none)):
        yield _values("embedding_sharding", [none])


def _release(options: ConvertOptions, allows: Allows) -> Iterable[str]:
    lines = dict.fromkeys(one.line for one in all_releases() if allows(replace(options, release=one.name)))
    if lines:
        option, key = WRITTEN["release"]
        yield f"a release of {spans(tuple(lines))} ({option}, {key} in forge.yaml)"


def _values(name: str, values: Sequence[object]) -> str:
    option, key = WRITTEN[name]
    *others, last = map(str, values)
    return f"{option} {', '.join(others)}{' or ' if others else ''}{last} ({key} in forge.yaml)"
