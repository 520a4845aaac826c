"""What a server's index adds to a refusal: the nearest name, the versions there are, why a model is not ready. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tritonforge.client.types import ModelInfo
from tritonforge.errors import ModelNotFound, ModelNotReady, did_you_mean

# Triton puts the model's name in quotes, whatever else it says.
QUOTED = re.compile(r"'([^']+)'")


def explain(error: ModelNotFound | ModelNotReady, index: Sequence[ModelInfo]) -> None:
    """Set the hint of a refusal to what the index knows about its model."""
    quoted = QUOTED.search(error.detail)
    if quoted is None:
        return
    entries = [entry for entry in index if entry.name == quoted[1]]
    if entries:
        error.hint = _about_versions(entries)
    else:
        names = sorted({entry.name for entry in index})
        near = did_you_mean(quoted[1], names)
        error.hint = near or error.hint or f"models there: {', '.join(names) or 'none'}"


def _about_versions(entries: Sequence[ModelInfo]) -> str:
    failed = [entry for entry in entries if entry.failed]
    if failed:
        return f"the server could not load version {failed[0].version}: {failed[0].reason.strip()}"
    ready = [entry.version for entry in entries if entry.state == "READY"]
    if ready:
        return f"versions there: {', '.join(ready)}"
    return f"it is {', '.join(sorted({entry.reason or entry.state.lower() for entry in entries}))}; load it first"
