"""What a conversion makes: the configuration of the target, and the jobs that make its tensors."""

from __future__ import annotations

from dataclasses import replace

from tritonforge.checkpoint.jobs import AnyJob, StreamJob, full_tensor
from tritonforge.checkpoint.mapping import RowReader
from tritonforge.checkpoint.options import AUTO, ConvertOptions
from tritonforge.checkpoint.quantize.plan import quantised_config, quantised_jobs
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.formats.trtllm import FLOAT_TYPES, TrtllmConfig


def target_config(source: SourceCheckpoint, options: ConvertOptions) -> TrtllmConfig:
    """The configuration of what a conversion makes.

    Args:
        source: The checkpoint.
        options: What was chosen.

    Raises:
        CheckpointError: The precision does not exist for this checkpoint.
    """
    config = replace(
        source.config,
        dtype=source.config.dtype if options.float_type == AUTO else options.float_type,
        tp_size=options.tp,
        pp_size=options.pp,
        use_parallel_embedding=options.embedding_sharding != "none",
        embedding_sharding_dim=1 if options.embedding_sharding == "hidden" else 0,
    )
    return quantised_config(source, config, options) if options.is_quantised else config


def plan_jobs(source: SourceCheckpoint, config: TrtllmConfig, options: ConvertOptions) -> list[AnyJob]:
    """Everything that has to be made, quantised or not.

    Args:
        source: The checkpoint.
        config: The target's configuration, with ranks, dtype and quantisation.
        options: What was chosen.
    """
    quantised = quantised_jobs(source, config, options) if options.is_quantised else []
    made = {tensor.name for job in quantised for tensor in job.tensors}
    code = FLOAT_TYPES[config.dtype]
    floats = [
        StreamJob(full_tensor(target.name, code, target.shape, config), RowReader(source, target, code))
        for target in source.targets
        if target.name not in made
    ]
    return [*quantised, *floats]
