"""What a precision changes: the configuration, and which tensors are made otherwise than as floats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tritonforge.checkpoint.jobs import AnyJob
from tritonforge.checkpoint.options import AUTO, ConvertOptions
from tritonforge.checkpoint.quantize.fp8_jobs import fp8_jobs
from tritonforge.checkpoint.quantize.int4_jobs import int4_jobs
from tritonforge.checkpoint.quantize.kv_cache import kv_cache_jobs
from tritonforge.checkpoint.quantize.limits import advice_on_groups, reasons_against
from tritonforge.checkpoint.quantize.linears import QKV, Linear, linears_of
from tritonforge.checkpoint.quantize.precisions import (
    FP8,
    INT4_AWQ,
    READS_RANGES,
    SMOOTHQUANT,
    kv_cache_algorithm,
    weight_algorithm,
)
from tritonforge.checkpoint.quantize.ranges import INPUTS, OUTPUTS, ActivationRanges, read_ranges
from tritonforge.checkpoint.quantize.smoothquant_jobs import smoothquant_jobs
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.errors import UnsupportedModel
from tritonforge.formats.trtllm import TrtllmConfig
from tritonforge.formats.trtllm_quantization import QuantDetails
from tritonforge.releases.checkpoint_rules import config_features
from tritonforge.releases.table import find_release

_HEAD = ("lm_head",)
_DETAILS = "quant_details"
_HINT = "docs/quantisation.md says what each precision asks for"


def quantised_config(source: SourceCheckpoint, config: TrtllmConfig, options: ConvertOptions) -> TrtllmConfig:
    """The target's configuration with its quantisation; everything that can be refused is refused here.

    Args:
        source: The checkpoint.
        config: The target's configuration with dtype and ranks.
        options: What was chosen.

    Raises:
        UnsupportedModel: The precision does not exist for it, or not as chosen.
        CheckpointNotFound: There is no file of activation ranges where one is named.
        CorruptFile: It is damaged, of another model, or incomplete.
    """
    reasons = reasons_against(source, config, options)
    if reasons:
        kinds = [*([options.precision] if options.precision else []), *_kv_words(options)]
        raise UnsupportedModel(
            f"{source.folder} as {' with '.join(kinds)}",
            reasons,
            hint=advice_on_groups(source, config, options) or _HINT,
        )
    _ranges(source, options)
    return replace(
        config,
        quant_algo=weight_algorithm(options.precision, options.smoothquant),
        kv_cache_quant_algo=kv_cache_algorithm(options.kv_cache),
        quant_details=_details(options),
    )


def quantised_jobs(source: SourceCheckpoint, config: TrtllmConfig, options: ConvertOptions) -> list[AnyJob]:
    """The jobs that make tensors otherwise than as floats.

    A float target whose name is among their tensors is made by them alone. Weight-only precisions have no jobs: their
    weights stay floats, and TensorRT-LLM rounds them when it builds the engine, because their layout is the GPU's.

    Args:
        source: The checkpoint.
        config: What `quantised_config` gave.
        options: What was chosen.
    """
    ranges = _ranges(source, options)
    jobs: list[AnyJob] = []
    if options.precision == INT4_AWQ:
        jobs += int4_jobs(source, config, options, ranges)
    if options.precision == FP8 and ranges is not None:
        jobs += fp8_jobs(source, config, ranges)
    if options.precision == SMOOTHQUANT and ranges is not None:
        jobs += smoothquant_jobs(source, config, options, ranges)
    if options.kv_cache != AUTO:
        jobs += kv_cache_jobs(source, options.kv_cache, ranges)
    return jobs


def _kv_words(options: ConvertOptions) -> list[str]:
    return [] if options.kv_cache == AUTO else [f"an {options.kv_cache} KV cache"]


def _ranges(source: SourceCheckpoint, options: ConvertOptions) -> ActivationRanges | None:
    needed = list(_needed(source, options))
    path: Path | None = options.activation_ranges
    return read_ranges(path, source, needed) if path is not None and needed else None


def _needed(source: SourceCheckpoint, options: ConvertOptions) -> Iterator[tuple[Linear, str]]:
    """Which ranges are used."""
    for linear in linears_of(source):
        if options.precision in READS_RANGES:
            yield linear, INPUTS
        if options.precision == SMOOTHQUANT or (options.kv_cache != AUTO and linear.place == QKV):
            yield linear, OUTPUTS


def _details(options: ConvertOptions) -> QuantDetails:
    """Beside the names of the algorithms, what the release has to know or, in later lines, is told as upstream does."""
    if options.precision == INT4_AWQ:
        return QuantDetails(
            group_size=options.group_size, has_zero_point=False, pre_quant_scale=True, exclude_modules=_HEAD
        )
    if _DETAILS not in config_features(find_release(options.release)):
        return QuantDetails()
    if options.precision == SMOOTHQUANT:
        return QuantDetails(smoothquant_val=options.smoothquant.alpha)
    return QuantDetails(exclude_modules=_HEAD) if options.precision == FP8 else QuantDetails()
