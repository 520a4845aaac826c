"""What the history of a repository says, read as any program would read it."""

from __future__ import annotations

import json
from pathlib import Path

from tritonforge.places import forge_folder
from tritonforge.repository.history import Change, Generation, history_folder


def read_generations(repository: Path) -> list[Generation]:
    """All generations of a repository, oldest first; none when it was never published to."""
    return [_read(path) for path in sorted(history_folder(forge_folder(repository)).glob("*.json"))]


def _read(path: Path) -> Generation:
    value = json.loads(path.read_text(encoding="utf-8"))
    return Generation(**value | {"changes": tuple(Change(**change) for change in value["changes"])})
