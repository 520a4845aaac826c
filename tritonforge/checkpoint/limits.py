"""What cannot be converted, or not for the engine or the release that was asked for: refused before any work."""

from __future__ import annotations

from tritonforge.checkpoint.families.base import ENGINES, TENSORRT_LLM
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.errors import UnsupportedModel


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
    """
    reasons = list(source.engine_reasons.get(engine, ()))
    if reasons:
        others = [name for name in ENGINES if name != engine and not source.engine_reasons.get(name)]
        raise UnsupportedModel(
            f"{source.folder} ({source.architecture}) on {engine}",
            reasons,
            hint=f"the engine {others[0]} can serve it" if others and engine == TENSORRT_LLM else None,
        )
    return ()
