"""Where the weights come from."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from tritonforge.spec.base import MAX_PATH_LENGTH, check_path_text

REMOTE = re.compile(r"hf:|[A-Za-z][A-Za-z0-9+.-]*://")


def check_checkpoint(reference: str) -> str:
    """Refuse what this release cannot read. The one place to open when remote checkpoints are added.

    Args:
        reference: A local folder in Hugging Face form, or a local .gguf file.

    Raises:
        ValueError: The reference is remote, or no path at all.
    """
    check_path_text(reference)
    if REMOTE.match(reference):
        raise ValueError("this release reads local folders and GGUF files; download the checkpoint and give its path")
    return reference


CheckpointRef = Annotated[
    str,
    AfterValidator(check_checkpoint),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_PATH_LENGTH,
            "pattern": r"^(?!hf:|[A-Za-z][A-Za-z0-9+.-]*://)",
        }
    ),
]
