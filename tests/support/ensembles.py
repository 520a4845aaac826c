"""Small models on the embedded engine, rendered into a repository in either layout by our own stages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.engines import build_small, small_spec
from tritonforge.artifacts import EngineArtifact
from tritonforge.checkpoint.source import open_checkpoint
from tritonforge.checkpoint.tokenizer import find_tokenizer
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.render_ensemble import render_ensemble, render_parts
from tritonforge.repository.serving import ServedVersion
from tritonforge.spec.model import ModelSpec

LIMITS = {"max_batch_size": 8, "max_input_len": 64, "max_seq_len": 256}


def build_engine(checkpoint: Path, out: Path) -> EngineArtifact:
    """The engine of a small checkpoint, in full precision."""
    return build_small(checkpoint, out, spec=small_spec(kv_cache_gib=0.05), **LIMITS)


def add_model(
    repository: Path,
    name: str,
    checkpoint: Path,
    engines: Mapping[int, EngineArtifact],
    *,
    layout: str = "ensemble",
    traffic: int = 1,
) -> None:
    """Render one model into the repository.

    Args:
        repository: Existing folder.
        name: Public name.
        checkpoint: Hugging Face folder.
        engines: Engine by version number.
        layout: ``ensemble`` or ``gateway``.
        traffic: Version that has all of it.
    """
    version = {"engine": {"kind": "openvino", "precision": "float32"}}
    model = ModelSpec.model_validate(
        {
            "name": name,
            "checkpoint": str(checkpoint),
            "layout": layout,
            "versions": dict.fromkeys(engines, version),
            "traffic": {traffic: 100.0},
            "limits": LIMITS,
        }
    )
    tokenizer = find_tokenizer(open_checkpoint(checkpoint))
    served = []
    for number, engine in engines.items():
        resolved = model.resolved(number)
        render_engine(resolved, engine, repository, mount=str(repository))
        served.append(ServedVersion.of(resolved, engine, tokenizer))
        if layout == "ensemble":
            render_parts(resolved, served[-1], repository)
    weights = {number: 100.0 * (number == traffic) for number in engines}
    if layout == "ensemble":
        render_ensemble(name, served, repository, weights=weights, repository=repository)
    else:
        render_gateway(model, served, repository, weights=weights)
