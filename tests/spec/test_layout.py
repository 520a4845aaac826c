"""The key `layout`: what stands in front of the engines, and what an ensemble rules out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.examples import TENSORRT_LLM, TWO_VERSIONS, changed, load_text, refused

VERSIONS = "{1: {engine: {kind: openvino, precision: int8}}}"
CHECKPOINT = "    checkpoint: ./checkpoints/SmolLM2-135M-Instruct\n"
ENSEMBLE = TWO_VERSIONS.replace(CHECKPOINT, f"{CHECKPOINT}    layout: ensemble\n")


def test_the_gateway_is_the_default(tmp_path: Path) -> None:
    assert load_text(tmp_path, TWO_VERSIONS).spec.models[0].layout == "gateway"


def test_an_ensemble_may_have_several_versions_with_all_traffic_on_one(tmp_path: Path) -> None:
    model = load_text(tmp_path, ENSEMBLE).spec.models[0]

    assert (model.layout, sorted(model.versions), dict(model.traffic)) == ("ensemble", [1, 2], {1: 100})


def test_an_ensemble_of_a_tensorrt_llm_engine_is_taken(tmp_path: Path) -> None:
    text = TENSORRT_LLM.replace("    checkpoint: ./llama\n", "    checkpoint: ./llama\n    layout: ensemble\n")

    assert load_text(tmp_path, text).spec.models[0].layout == "ensemble"


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, ENSEMBLE.replace("layout: ensemble", "layout: ensembel"))

    assert error.key == "models[0].layout"
    assert "gateway" in error.problem
    assert "ensemble" in error.problem


def test_traffic_that_is_split_is_refused_with_the_reason(tmp_path: Path) -> None:
    error = refused(tmp_path, ENSEMBLE.replace("traffic: {1: 100}", "traffic: {1: 95, 2: 5}"))

    assert error.key == "models[0].traffic"
    assert "gives versions 1, 2 a weight while layout is ensemble" in error.problem
    assert "expected one weight above 0, or layout: gateway, which splits traffic" in error.problem


@pytest.mark.parametrize("kind", ["vllm", "llmapi"])
def test_engines_that_take_text_have_no_ensemble(tmp_path: Path, kind: str) -> None:
    engine = "{kind: vllm}" if kind == "vllm" else '{kind: llmapi, release: "1.0.0"}'
    text = ENSEMBLE.replace("2: {engine: {kind: openvino, precision: int8}}", f"2: {{engine: {engine}}}")
    error = refused(tmp_path, text)

    assert error.key == "models[0].versions.2.engine"
    assert f"is of kind {kind}, which takes text" in error.problem
    assert "expected one of openvino, tensorrt_llm, or layout: gateway" in error.problem


def test_a_test_with_messages_is_refused(tmp_path: Path) -> None:
    asked = '{prompt: "The capital of France is", max_tokens: 8, contains: Paris}'
    error = refused(tmp_path, ENSEMBLE.replace(asked, "{messages: [{role: user, content: Hi}]}"))

    assert error.key == "models[0].tests[0].messages"
    assert "whose input is plain text; expected prompt" in error.problem


@pytest.mark.parametrize("part", ["preprocessing", "postprocessing", "ensemble", "engine"])
def test_folders_of_an_ensemble_are_its_own(tmp_path: Path, part: str) -> None:
    other = f"  - name: smollm2_{part}_v2\n    checkpoint: ./other\n    versions: {VERSIONS}\n"
    error = refused(tmp_path, ENSEMBLE + other)

    assert f"needs the folder 'smollm2_{part}_v2' in the repository, and so does model 'smollm2'" in error.problem


def test_a_gateway_leaves_the_names_of_an_ensemble_free(tmp_path: Path) -> None:
    name = changed("- name: smollm2 ", "- name: smollm2_ensemble_v1 ")

    assert load_text(tmp_path, name).spec.models[0].name == "smollm2_ensemble_v1"
