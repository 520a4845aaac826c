"""Which tensors a precision changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonforge.errors import UnsupportedModel

if TYPE_CHECKING:
    from tritonforge.checkpoint.jobs import Job
    from tritonforge.checkpoint.options import ConvertOptions
    from tritonforge.checkpoint.source import SourceCheckpoint
    from tritonforge.formats.trtllm import TrtllmConfig


def quantised_config(source: SourceCheckpoint, config: TrtllmConfig, options: ConvertOptions) -> TrtllmConfig:
    """The target's configuration with its quantisation; everything that can be refused is refused here.

    Args:
        source: The checkpoint.
        config: The target's configuration with dtype and ranks.
        options: What was chosen.

    Raises:
        UnsupportedModel: The precision does not exist for it.
    """
    raise UnsupportedModel(f"{source.folder} as {options.precision}", [f"{config.architecture} has only float weights"])


def quantised_jobs(source: SourceCheckpoint, config: TrtllmConfig, options: ConvertOptions) -> list[Job]:
    """The jobs that make tensors otherwise than as floats.

    A float target whose name is among their tensors is made by them alone.

    Args:
        source: The checkpoint.
        config: What `quantised_config` gave.
        options: What was chosen.
    """
    raise NotImplementedError(f"{source.folder}, {config.architecture}, {options.precision}")
