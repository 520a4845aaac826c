"""Renders forge.yaml beside this file into the reference repository: all but engines, tokenizers and code copies.

`python -m tests.golden.reference FOLDER` replaces what FOLDER holds.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.support.trtllm_engines import write_trtllm_engine
from tritonforge.artifacts import EngineArtifact, TokenizerArtifact
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.render_ensemble import render_ensemble, render_parts
from tritonforge.repository.serving import ServedVersion
from tritonforge.spec.load import load_spec
from tritonforge.spec.model import ModelSpec, ResolvedVersion
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

SPEC = Path(__file__).parent / "forge.yaml"
# Copies of tritonforge/runtime and what Python compiled of them: they would say nothing that the package does not say.
LEFT_OUT = ("tritonforge_runtime", "__pycache__")
# What the checkpoints of these models say; they are not read here.
TOKENIZERS = {
    "smollm2": TokenizerArtifact("huggingface", {}, eos_token_ids=(2, 0), pad_token_id=2),
    "tinyllama": TokenizerArtifact("huggingface", {}, eos_token_ids=(2,), pad_token_id=2),
    "glm4": TokenizerArtifact("glm4", {}, eos_token_ids=(151329, 151336, 151338), pad_token_id=151329),
    "llama3": TokenizerArtifact("huggingface", {}, eos_token_ids=(128001, 128008, 128009), pad_token_id=128001),
}
VOCAB_SIZES = {"smollm2": 49152, "glm4": 151552, "llama3": 128256, "tinyllama": 32000}


def render_reference(out: Path) -> None:
    """Render every model of the specification into an empty folder."""
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as engines:
        for model in load_spec(SPEC).spec.models:
            _render_model(model, Path(scratch), Path(engines))
        shutil.copytree(scratch, out, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)


def _render_model(model: ModelSpec, out: Path, engines: Path) -> None:
    served = []
    for number in model.versions:
        version = model.resolved(number)
        engine = _engine(version, engines)
        folder = render_engine(version, engine, out, mount="/models") / str(number)
        if not any(folder.glob("*")):
            folder.mkdir()
            (folder / ".gitkeep").touch()  # git keeps no empty folders, and Triton loads no model without a version
        served.append(ServedVersion.of(version, engine, TOKENIZERS[model.name]))
        if model.layout == "ensemble":
            render_parts(version, served[-1], out)
    if model.layout == "ensemble":
        render_ensemble(model.name, served, out, weights=model.traffic, repository=out)
    else:
        render_gateway(model, served, out, weights=model.traffic)


def _engine(version: ResolvedVersion, engines: Path) -> EngineArtifact:
    """An engine without files; what a TensorRT-LLM engine would say of itself lies in `engines`."""
    engine, limits, vocab_size = version.engine, version.limits, VOCAB_SIZES[version.model_name]
    if not isinstance(engine, TensorRtLlmEngineSpec):
        return EngineArtifact(engines, engine.kind, (), vocab_size, weights_bytes=0)
    built = write_trtllm_engine(
        engines / version.model_name,
        engine.release,
        ranks=engine.ranks,
        vocab_size=vocab_size,
        paged_context_fmha=engine.plugins.paged_context_fmha,
        **limits.model_dump(exclude_none=True),
    )
    return replace(built, files=())


def main(folder: Path) -> None:
    """Replace the model folders in `folder`; files beside them stay."""
    with tempfile.TemporaryDirectory() as rendered:
        render_reference(Path(rendered))  # first: a template that is wrong takes nothing away
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
        shutil.copytree(rendered, folder, dirs_exist_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
