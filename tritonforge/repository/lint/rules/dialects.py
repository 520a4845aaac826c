"""The dialect that a gateway speaks to each of its engines, against what the engine is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonforge.errors import TritonforgeError
from tritonforge.formats.json_fields import read_json_object
from tritonforge.repository.dialects import LLMAPI, TENSORRT_LLM, VLLM
from tritonforge.repository.layout import engine_model_name, served_versions
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import ModelView, RepositoryView

SPOKEN = (LLMAPI, TENSORRT_LLM, VLLM)


def _gateway_speaks_the_engines_dialect(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    for number, path in served_versions(model.folder).items():
        dialect = _dialect_in(path)
        if dialect is None:  # the gateway's own reading of the file is no matter of dialects
            continue
        if dialect not in SPOKEN:
            yield Problem(
                f"dialect is {dialect!r}; the gateway speaks {', '.join(SPOKEN)} and cannot serve this version",
                "build this version again with --replace",
                path=path,
            )
            continue
        name = engine_model_name(model.name, number)
        engine = repository.models.get(name)
        understood = None if engine is None or engine.config is None else _understood(engine)
        if understood not in {None, dialect}:
            yield Problem(
                f"dialect is {dialect!r}, and engine model {name!r} understands {understood!r}: it answers no request",
                "build this version again with --replace",
                path=path,
            )


def _understood(engine: ModelView) -> str | None:
    """What an engine model understands; None when that cannot be told."""
    if engine.backend == "vllm":
        return VLLM
    if engine.backend == "tensorrtllm":
        return TENSORRT_LLM
    kinds = {"llmapi": LLMAPI, "openvino": TENSORRT_LLM}
    return kinds.get(engine.parameter("engine_kind") or "")


def _dialect_in(path: Path) -> str | None:
    try:
        dialect = read_json_object(path).get("dialect")
    except TritonforgeError:
        return None
    return dialect if isinstance(dialect, str) else None


DIALECT_RULES = (
    ModelRule(
        "dialect-mismatch",
        Severity.ERROR,
        "A gateway sends each engine the tensors of the dialect that serving.json names; an engine refuses all others.",
        _gateway_speaks_the_engines_dialect,
        needs_config=False,
    ),
)
