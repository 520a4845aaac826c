"""Renders NVIDIA's ensemble around an engine of the `tensorrtllm` backend for several releases.

`python -m tests.golden.ensemble_configs` writes the configs beside this file, into `ensemble/<release>/`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.support.trtllm_engines import write_trtllm_engine
from tritonforge.artifacts import TokenizerArtifact
from tritonforge.repository.render import render_engine
from tritonforge.repository.render_ensemble import render_ensemble, render_parts
from tritonforge.repository.serving import ServedVersion
from tritonforge.spec.model import ModelSpec

FOLDER = Path(__file__).parent / "ensemble"
# Lines that differ in tensors and joints.
RELEASES = ("0.9.0", "0.12.0", "0.16.0", "0.19.0")
PARTS = ("llama_preprocessing_v3", "llama_engine_v3", "llama_postprocessing_v3", "llama")


def render_release(release: str, out: Path) -> None:
    """The model `llama` with version 3, built by a release, in the layout `ensemble`.

    Args:
        release: TensorRT-LLM release.
        out: Existing folder that takes the model folders.
    """
    version = {"engine": {"kind": "tensorrt_llm", "release": release}}
    model = ModelSpec.model_validate(
        {
            "name": "llama",
            "checkpoint": "./checkpoint",
            "layout": "ensemble",
            "versions": {3: version},
            "limits": {"max_batch_size": 8},
        }
    )
    resolved = model.resolved(3)
    with tempfile.TemporaryDirectory() as scratch:
        engine = write_trtllm_engine(Path(scratch) / "engine", release)
        render_engine(resolved, engine, out, mount="/models")
        served = ServedVersion.of(resolved, engine, TokenizerArtifact("huggingface", {}, (2, 0), 2))
    render_parts(resolved, served, out)
    render_ensemble("llama", [served], out, weights={3: 100.0}, repository=out)


def main() -> None:
    """Write every golden file."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for release in RELEASES:
        with tempfile.TemporaryDirectory() as scratch:
            render_release(release, Path(scratch))
            (FOLDER / release).mkdir(parents=True)
            for part in PARTS:
                shutil.copyfile(Path(scratch) / part / "config.pbtxt", FOLDER / release / f"{part}.pbtxt")


if __name__ == "__main__":
    main()
