"""Engine models that take text: what is rendered for them, letter by letter, and that it is what upstream reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.repository.specs import make_tokenizer, read_served
from tests.support.checkpoints import write_llama
from tritonforge.artifacts import EngineArtifact
from tritonforge.engine.served_checkpoint import prepare_served
from tritonforge.repository.engine_source import EngineSource
from tritonforge.repository.lint import Severity, lint
from tritonforge.repository.manifest import Manifest
from tritonforge.repository.pbtxt import parameter_of, read_config
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.serving import ServedVersion
from tritonforge.repository.text_engines import llmapi_context
from tritonforge.spec.model import ModelSpec

SAME_EXAMPLES = settings(max_examples=100, deadline=None, derandomize=True, database=None)

GOLDEN = Path(__file__).parents[1] / "golden" / "text_engines"
ENGINES: dict[str, dict[str, Any]] = {
    "vllm": {
        "kind": "vllm",
        "dtype": "bfloat16",
        "tensor_parallel_size": 2,
        "gpus": [0, 1],
        "report_metrics": True,
        "enable_prefix_caching": True,
        "engine_args": {"block_size": 16, "compilation_config": {"level": 3}},
    },
    "llmapi": {
        "kind": "llmapi",
        "release": "1.0.0",
        "tensor_parallel": 2,
        "kv_cache": {"free_gpu_memory_fraction": 0.8},
        "llm_args": {"cuda_graph_config": {"enable_padding": True}},
    },
}


def model_of(kind: str, **changes: Any) -> ModelSpec:
    limits = {"max_batch_size": 8, "max_input_len": 100, "max_seq_len": 200}
    value = {"name": "tiny", "checkpoint": "./nowhere", "limits": limits, "versions": {3: {"engine": ENGINES[kind]}}}
    return ModelSpec.model_validate(value | changes)


def render(kind: str, out: Path, *, mount: str = "/models", **changes: Any) -> Path:
    """Version 3 with its gateway; returns the engine's folder."""
    model = model_of(kind, **changes)
    version = model.resolved(3)
    source = write_llama(out / "hf")
    engine = prepare_served(
        version.engine,  # type: ignore[arg-type]
        source,
        out / "engine",
        vocab_size=512,
        tokenizer_kind="huggingface",
    )
    repository = out / "repository"
    repository.mkdir()
    manifest = Manifest("tiny", 3, kind, "c" * 64, "s" * 64, "2026-01-01T00:00:00Z", {"tritonforge": "0"})
    folder = render_engine(version, engine, repository, mount=mount, manifest=manifest)
    served = ServedVersion.of(version, engine, make_tokenizer(out / "tokenizer"))
    render_gateway(model, [served], repository, weights={3: 100})
    return folder


@pytest.mark.parametrize("kind", ENGINES)
def test_what_is_rendered_is_known_letter_by_letter(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    folder = render(kind, tmp_path)
    for name in ("config.pbtxt", "3/model.json" if kind == "vllm" else "3/model.yaml"):
        golden = GOLDEN / kind / Path(name).name
        assert (folder / name).read_text() == golden.read_text(), f"{golden}: is it meant to change?"


def test_vllm_reads_where_the_checkpoint_is_and_how_to_run_it(tmp_path: Path) -> None:
    folder = render("vllm", tmp_path, mount=str(tmp_path / "repository"))
    arguments = json.loads((folder / "3" / "model.json").read_text())
    assert (Path(arguments["model"]) / "config.json").is_file()
    assert (arguments["max_model_len"], arguments["max_num_seqs"]) == (200, 8)
    assert (arguments["block_size"], arguments["compilation_config"]) == (16, {"level": 3})
    assert "trust_remote_code" not in arguments
    assert "quantization" not in arguments
    config = read_config(folder / "config.pbtxt")
    assert (config.backend, config.max_batch_size) == ("vllm", 0)
    assert [group.kind for group in config.instance_group] == [3]  # KIND_MODEL
    assert (parameter_of(config, "REPORT_CUSTOM_METRICS"), parameter_of(config, "GPU_DEVICE_IDS")) == ("true", "0,1")


def test_one_gpu_per_copy_is_left_to_triton(tmp_path: Path) -> None:
    engine = {"versions": {3: {"engine": {"kind": "vllm"}}}}
    groups = {"instance_group": [{"kind": "KIND_GPU", "count": 1, "gpus": [0, 1]}]}
    config = read_config(render("vllm", tmp_path, serving=groups, **engine) / "config.pbtxt")
    assert [(group.kind, list(group.gpus)) for group in config.instance_group] == [(1, [0, 1])]
    assert parameter_of(config, "GPU_DEVICE_IDS") is None


def test_llmapi_reads_upstreams_keys(tmp_path: Path) -> None:
    folder = render("llmapi", tmp_path)
    arguments = yaml.safe_load((folder / "3" / "model.yaml").read_text())
    assert arguments.pop("triton_config") == {
        "max_batch_size": 0, "decoupled": True, "cancellation_check_period_ms": 100
    }  # fmt: skip
    assert arguments["model"] == "/models/tiny_engine_v3/3/checkpoint"
    assert (arguments["backend"], arguments["tensor_parallel_size"]) == ("pytorch", 2)
    assert arguments["kv_cache_config"] == {"free_gpu_memory_fraction": 0.8, "enable_block_reuse": True}
    assert arguments["cuda_graph_config"] == {"enable_padding": True}
    assert (folder / "3" / "tritonforge_runtime" / "llmapi" / "model.py").is_file()
    assert not (folder / "3" / "tritonforge_runtime" / "gateway").exists()


def test_the_kv_cache_has_the_names_of_the_llm_api(tmp_path: Path) -> None:
    cache = {"dtype": "fp8", "max_tokens": 4096, "host_cache_bytes": 2**30}
    engine = {"versions": {3: {"engine": {"kind": "llmapi", "release": "1.0.0", "kv_cache": cache}}}}
    arguments = yaml.safe_load((render("llmapi", tmp_path, **engine) / "3" / "model.yaml").read_text())
    assert arguments["kv_cache_config"] == {
        "free_gpu_memory_fraction": 0.9, "enable_block_reuse": True, "dtype": "fp8", "max_tokens": 4096,
        "host_cache_size": 2**30,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "unserved"),
    [("vllm", ()), ("llmapi", ("repetition_penalty", "min_length", "bad_words", "return_log_probs"))],
)
def test_the_gateway_is_told_how_to_speak(tmp_path: Path, kind: str, unserved: tuple[str, ...]) -> None:
    folder = render(kind, tmp_path)
    (served,) = read_served(folder.parent / "tiny")
    assert (served.engine_kind, served.dialect.name, served.dialect.unserved_inputs) == (kind, kind, unserved)
    serving = json.loads((folder.parent / "tiny" / "1" / "versions" / "3" / "serving.json").read_text())
    assert serving["dialect"] == kind


@pytest.mark.parametrize("kind", ENGINES)
def test_lint_finds_nothing_to_say(tmp_path: Path, kind: str) -> None:
    folder = render(kind, tmp_path, mount=str(tmp_path / "repository"))
    found = [finding for finding in lint(folder.parent) if finding.severity is not Severity.INFO]
    assert found == []


@pytest.mark.parametrize("kind", ENGINES)
def test_the_manifest_lists_the_checkpoint_too(tmp_path: Path, kind: str) -> None:
    folder = render(kind, tmp_path)
    (folder / "3" / "checkpoint" / "model.safetensors").unlink()
    codes = {finding.code for finding in lint(folder.parent)}
    assert "engine-truncated" in codes


def regenerate(out: Path) -> None:
    """Write the goldens anew, to be reviewed: `python -c "…regenerate(Path('/tmp/x'))"`."""
    for kind in ENGINES:
        folder = render(kind, out / kind)
        (GOLDEN / kind).mkdir(parents=True, exist_ok=True)
        for name in ("config.pbtxt", "3/model.json" if kind == "vllm" else "3/model.yaml"):
            shutil.copyfile(folder / name, GOLDEN / kind / Path(name).name)


@SAME_EXAMPLES
@given(st.text(st.sampled_from("\x00\x07\x85\u2028\u2029\ufeff\n\r\t 'a\"#:-{é👋0"), max_size=8))
def test_texts_reach_the_llm_api_as_they_are_written(text: str) -> None:
    engine = {**ENGINES["llmapi"], "llm_args": {"a": text, "b": [{text: text}]}}
    version = model_of("llmapi", versions={3: {"engine": engine}}).resolved(3)
    source = EngineSource(version, EngineArtifact(Path("/"), "llmapi", (), 1, 0), f"/{text}", with_histograms=False)
    arguments = yaml.safe_load(llmapi_context(source).arguments)
    assert (arguments["a"], arguments["b"]) == (text, [{text: text}])
    assert arguments["model"] == str(PurePosixPath(f"/{text}", "checkpoint"))
