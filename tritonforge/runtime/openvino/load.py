"""Which of the two kinds of engine serves a version folder."""

from __future__ import annotations

from pathlib import Path

from .continuous import ContinuousEngine
from .engine import Engine
from .settings import EngineSettings
from .stateful import StatefulEngine


def load_engine(folder: Path, settings: EngineSettings) -> Engine:
    """Load the engine of a version folder, which takes seconds. Raises what the library raises."""
    return ContinuousEngine(folder, settings) if settings.fused_attention else StatefulEngine(folder, settings)
