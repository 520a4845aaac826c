"""What a version inherits from its model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.examples import TWO_VERSIONS, changed, load_text, refused
from tritonforge.errors import SpecError
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.model import ResolvedVersion
from tritonforge.spec.openvino import OpenVinoEngineSpec, OpenVinoRuntime
from tritonforge.spec.tests import TestSpec

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
    assert (
        "contradicts the model's limits: max_input_len is 2048; expected less than max_seq_len (1024)" in error.problem
    )


def test_a_preferred_batch_that_one_version_cannot_take_names_it(tmp_path: Path) -> None:
    text = changed("{max_queue_delay_microseconds: 1000}", "{preferred_batch_size: [16]}")
    error = refused(tmp_path, changed(V2, V2.removesuffix("}") + ", limits: {max_batch_size: 8}}", text))
    assert "holds 16; expected at most max_batch_size (8 in version 2)" in error.problem


def test_every_broken_rule_of_a_model_is_listed(tmp_path: Path) -> None:
    text = changed("{1: 100}", "{3: 1, 4: 0}", changed(V2, V2.removesuffix("}") + ", limits: {max_seq_len: 9}}"))
    error = refused(tmp_path, changed("{max_queue_delay_microseconds: 1000}", "{preferred_batch_size: [64]}", text))
    keys = [line.split(": ")[1].removeprefix("models[0].") for line in str(error).splitlines()]
    assert keys == ["versions.2.limits", "traffic.3", "traffic.4", "serving.dynamic_batching.preferred_batch_size"]


def test_a_preferred_batch_of_a_version_is_refused_there(tmp_path: Path) -> None:
    serving = "serving: {dynamic_batching: {preferred_batch_size: [64]}}"
    error = refused(tmp_path, changed(V2, V2.removesuffix("}") + f", {serving}}}"))
    assert error.key == "models[0].versions.2.serving.dynamic_batching.preferred_batch_size"


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


@pytest.mark.parametrize(
    ("limits", "positions", "input_and_sequence"),
    [
        ({}, 131072, (2048, 4096)),
        ({}, 512, (256, 512)),
        ({"max_seq_len": 64}, 131072, (32, 64)),
        ({"max_seq_len": 8192}, 512, (2048, 8192)),
        ({"max_input_len": 100}, 512, (100, 512)),
        ({"max_seq_len": 2}, 2, (1, 2)),
    ],
)
def test_limits_that_were_left_out_follow_the_model(
    limits: dict[str, int], positions: int, input_and_sequence: tuple[int, int]
) -> None:
    fitted = LimitsSpec.model_validate(limits).fitted_to(positions)
    assert (fitted.max_input_len, fitted.max_seq_len) == input_and_sequence


def test_a_prompt_longer_than_the_model_was_trained_for_is_refused() -> None:
    with pytest.raises(SpecError, match="max_input_len is 600; expected less than 512"):
        LimitsSpec(max_input_len=600).fitted_to(512)


@pytest.mark.parametrize(
    ("test", "answer", "problem"),
    [
        ({"contains": "Paris"}, "It is Paris.", None),
        ({"contains": "Paris"}, "Rome", "the answer is 'Rome'; expected it to contain 'Paris'"),
        ({"equals": "Paris"}, " Paris\n", None),
        ({"equals": "Paris"}, "Paris.", "the answer is 'Paris.'; expected 'Paris'"),
        ({}, "anything", None),
        ({}, " \n", "the answer is empty"),
    ],
)
def test_an_answer_is_judged_by_what_its_test_asks(test: dict[str, str], answer: str, problem: str | None) -> None:
    assert TestSpec.model_validate({"prompt": "?", **test}).problem_with(answer) == problem


def test_a_model_of_a_single_position_has_no_limits() -> None:
    with pytest.raises(SpecError, match="trained for 1 positions; expected at least 2"):
        LimitsSpec().fitted_to(1)
