"""A model repository with versions of different kinds: the embedded engine, and stand-ins for vLLM and the LLM API.

Engine models are rendered by our own stages. What runs behind them stands in for what needs a GPU: the backend `vllm`,
and the library `tensorrt_llm` under our own model. Both repeat their prompt (`tests/support/standins`).
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from tests.runtime.gateway.tokenizer_folders import write_space_marked
from tests.support.checkpoints import write_llama
from tests.support.engines import build_small
from tritonforge.artifacts import EngineArtifact, TokenizerArtifact
from tritonforge.engine.served_checkpoint import prepare_served
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.runtime_copy import compile_python
from tritonforge.repository.serving import ServedVersion
from tritonforge.server.embedded import backend_directory, find_installation
from tritonforge.spec.model import ModelSpec, ResolvedVersion

STANDINS = Path(__file__).parents[2] / "support" / "standins"
# `poly` has one version of each kind; `marked` begins its prompts with a token, in its chat template and by itself.
POLY, MARKED = "poly", "marked"
OPENVINO, VLLM, LLMAPI, UPSTREAM = 1, 2, 3, 4  # the last is LLMAPI under what stands in for upstream's model
BEGIN, END = 1, 2  # ids of marked's tokenizer
LIMITS = {"max_batch_size": 4, "max_input_len": 160, "max_seq_len": 800}
OPENVINO_LIMITS = {"max_batch_size": 4, "max_input_len": 64, "max_seq_len": 128}
_KINDS: dict[int, dict[str, Any]] = {
    OPENVINO: {"kind": "openvino", "precision": "float32", "runtime": {"num_threads": 1, "kv_cache_gib": 0.01}},
    VLLM: {"kind": "vllm"},
    LLMAPI: {"kind": "llmapi", "release": "1.0.0", "cancellation_check_period_ms": 20},
    UPSTREAM: {"kind": "llmapi", "release": "0.19.0"},
}


def write_repository(folder: Path) -> Path:
    """Write checkpoints and the repository below `folder`; returns the repository."""
    repository = folder / "model_repository"
    repository.mkdir(parents=True)
    _write_model(POLY, write_llama(folder / POLY), repository, (OPENVINO, VLLM, LLMAPI, UPSTREAM))
    marked = write_llama(folder / MARKED, tokenizer=None, vocab=600)
    write_space_marked(marked)
    (marked / "generation_config.json").write_text(json.dumps({"eos_token_id": END}))
    _write_model(MARKED, marked, repository, (VLLM, LLMAPI))
    return repository


def install_backend(cache: Path) -> None:
    """Put the stand-in for the backend `vllm` beside the real Python backend, in a cache of its own."""
    backend = backend_directory(find_installation(), cache) / "vllm"
    backend.mkdir()
    shutil.copyfile(STANDINS / "vllm_model.py", backend / "model.py")
    shutil.copyfile(STANDINS / "parrot.py", backend / "parrot.py")


def _write_model(name: str, checkpoint: Path, repository: Path, numbers: tuple[int, ...]) -> None:
    versions = {number: {"engine": _KINDS[number], "limits": _limits(number)} for number in numbers}
    model = ModelSpec.model_validate(
        {"name": name, "checkpoint": str(checkpoint), "limits": LIMITS, "versions": versions}
    )
    tokenizer = _tokenizer(checkpoint)
    served = []
    for number in numbers:
        version = model.resolved(number)
        engine = _engine(version, checkpoint, repository.parent / f"{name}-engine{number}")
        rendered = render_engine(version, engine, repository, mount=str(repository))
        _for_the_embedded_triton(rendered / "config.pbtxt")
        if number == LLMAPI:
            _add_library(rendered / str(number))
        if number == UPSTREAM:
            _replace_model(rendered / str(number))
        served.append(ServedVersion.of(version, engine, tokenizer))
    render_gateway(model, served, repository, weights={numbers[0]: 100})


def _limits(number: int) -> dict[str, int]:
    return OPENVINO_LIMITS if number == OPENVINO else LIMITS


def _engine(version: ResolvedVersion, checkpoint: Path, out: Path) -> EngineArtifact:
    if version.number == OPENVINO:
        return build_small(checkpoint, out)
    vocab_size = json.loads((checkpoint / "config.json").read_text())["vocab_size"]
    kind = version.engine
    return prepare_served(kind, checkpoint, out, vocab_size=vocab_size, tokenizer_kind="huggingface")  # type: ignore[arg-type]


def _tokenizer(checkpoint: Path) -> TokenizerArtifact:
    names = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")
    return TokenizerArtifact("huggingface", {name: checkpoint / name for name in names}, (END,), END)


def _add_library(version_folder: Path) -> None:
    """Put the stand-in for the library beside the model: Triton's Python ignores PYTHONPATH, and finds it there."""
    shutil.copytree(STANDINS / "tensorrt_llm", version_folder / "tensorrt_llm")
    shutil.copyfile(STANDINS / "parrot.py", version_folder / "parrot.py")
    compile_python(version_folder.parent)


def _replace_model(version_folder: Path) -> None:
    """Put the stand-in for upstream's model in the place of ours."""
    shutil.copyfile(STANDINS / "upstream_llmapi_model.py", version_folder / "model.py")
    shutil.copyfile(STANDINS / "parrot.py", version_folder / "parrot.py")
    compile_python(version_folder.parent)


def _for_the_embedded_triton(config: Path) -> None:
    """Without the block that containers of the LLM API know and Triton 2.51 does not."""
    text = config.read_text()
    config.write_text(re.sub(r"\n# Time to the first response.*\Z", "\n", text, flags=re.DOTALL))
