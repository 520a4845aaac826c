"""What a version inherits from its model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.examples import TWO_VERSIONS, changed, load_text, refused
from tritonforge.spec.engine import OpenVinoEngineSpec, OpenVinoRuntime
from tritonforge.spec.model import ResolvedVersion

V2 = "2: {engine: {kind: openvino, precision: int8}}"


def version_2(tmp_path: Path, more: str) -> ResolvedVersion:
    text = changed(V2, V2.removesuffix("}") + f", {more}}}")
    return load_text(tmp_path, text).spec.models[0].resolved(2)


def test_a_version_inherits_what_it_does_not_say(tmp_path: Path) -> None:
    model = load_text(tmp_path, TWO_VERSIONS).spec.models[0]
    resolved = model.resolved(1)
    assert (resolved.model_name, resolved.number) == ("smollm2", 1)
    assert (resolved.checkpoint, resolved.limits, resolved.serving) == (model.checkpoint, model.limits, model.serving)


def test_a_version_overrides_single_limits(tmp_path: Path) -> None:
    limits = version_2(tmp_path, "limits: {max_batch_size: 8}").limits
    assert (limits.max_batch_size, limits.max_input_len, limits.max_seq_len) == (8, 2048, 4096)


def test_a_version_overrides_checkpoint_and_serving(tmp_path: Path) -> None:
    resolved = version_2(tmp_path, "checkpoint: ./other.gguf, serving: {default_max_tokens: 5}")
    assert resolved.checkpoint == "./other.gguf"
    assert resolved.serving.default_max_tokens == 5
    assert resolved.serving.dynamic_batching is not None


def test_a_version_turns_its_models_batcher_off(tmp_path: Path) -> None:
    assert version_2(tmp_path, "serving: {dynamic_batching: null}").serving.dynamic_batching is None


def test_limits_that_contradict_the_models_are_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, changed(V2, V2.removesuffix("}") + ", limits: {max_seq_len: 1024}}"))
    assert (error.line, error.key) == (8, "models[0].versions.2.limits")
    assert "max_input_len is 2048; expected less than max_seq_len (1024)" in error.problem


def test_a_preferred_batch_that_one_version_cannot_take_names_it(tmp_path: Path) -> None:
    text = changed("{max_queue_delay_microseconds: 1000}", "{preferred_batch_size: [16]}")
    error = refused(tmp_path, changed(V2, V2.removesuffix("}") + ", limits: {max_batch_size: 8}}", text))
    assert "holds 16; expected at most max_batch_size (8 in version 2)" in error.problem


SHORT = "limits: {max_input_len: 32, max_seq_len: 64}"


def test_the_default_answer_length_leaves_room_for_a_prompt(tmp_path: Path) -> None:
    assert version_2(tmp_path, SHORT).serving.default_max_tokens == 63


@pytest.mark.parametrize("of_version", [True, False])
def test_an_answer_length_that_was_asked_for_and_never_fits_is_refused(tmp_path: Path, of_version: bool) -> None:
    if of_version:
        text = changed(V2, V2.removesuffix("}") + f", {SHORT}, serving: {{default_max_tokens: 64}}}}")
    else:
        text = changed("    serving:\n", "    serving:\n      default_max_tokens: 4096\n")
    error = refused(tmp_path, text)
    place = "models[0].versions.2" if of_version else "models[0]"
    assert error.key == f"{place}.serving.default_max_tokens"


def test_traffic_goes_to_the_lowest_version_unless_said(tmp_path: Path) -> None:
    text = changed("    traffic: {1: 100}                    # initial weights\n", "")
    assert load_text(tmp_path, text).spec.models[0].traffic == {1: 100.0}


@pytest.mark.parametrize(
    ("weights", "asked", "decided"),
    [
        ("float32", "auto", "f32"),
        ("float16", "auto", "f32"),
        ("int8", "auto", "u8"),
        ("int4", "auto", "u8"),
        ("int4", "f16", "f16"),
    ],
)
def test_the_kv_cache_follows_the_weights_unless_said(weights: str, asked: str, decided: str) -> None:
    runtime = OpenVinoRuntime.model_validate({"kv_cache_precision": asked, "kv_cache_gib": 0.5})
    engine = OpenVinoEngineSpec.model_validate({"kind": "openvino", "precision": weights, "runtime": runtime})
    assert engine.kv_cache_precision == decided
    assert engine.runtime.kv_cache_bytes == 2**29
