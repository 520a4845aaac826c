"""The model.yaml of a version folder: arguments of the LLM API, and what concerns Triton. Pure but for reading it.

The keys are upstream's (read in tensorrtllm_backend v0.19.0), so the file can be used with upstream's model, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE_NAME = "model.yaml"
_TRITON = "triton_config"
_CHECK_PERIOD_MS = 100
_REMOTE_CODE = "trust_remote_code"


class SettingsInvalid(ValueError):
    """The file cannot be used; the message names it and what is wrong."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a version is served with.

    Args:
        llm_args: Arguments of the LLM API.
        check_period_s: Seconds between two looks at whether clients are still there.
    """

    llm_args: Mapping[str, Any]
    check_period_s: float


def read_settings(path: Path) -> Settings:
    """Read the file and check what would otherwise fail late, or be done silently.

    Raises:
        SettingsInvalid: It cannot be read, allows foreign code, names a checkpoint that is not there, or wants Triton
            to batch.
    """
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SettingsInvalid(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise SettingsInvalid(f"{path} holds a {type(value).__name__}; expected keys with values")
    triton = value.get(_TRITON) or {}
    args = {str(name): argument for name, argument in value.items() if name != _TRITON}
    if args.get(_REMOTE_CODE):
        raise SettingsInvalid(f"{path}: {_REMOTE_CODE} is set; a checkpoint's code is never run here")
    model = args.get("model")
    if not isinstance(model, str) or not Path(model).is_dir():
        raise SettingsInvalid(
            f"{path}: model is {model!r}, which is no folder here; publish the version again with `mount` set to where "
            f"the server sees the repository"
        )
    if triton.get("max_batch_size", 0) != 0:
        raise SettingsInvalid(f"{path}: {_TRITON}.max_batch_size is {triton['max_batch_size']!r}; expected 0")
    period_ms = triton.get("cancellation_check_period_ms", _CHECK_PERIOD_MS)
    return Settings(args, check_period_s=float(period_ms) / 1000)
