"""The tensors that go to an engine, and what comes back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.runtime.gateway.requests import inputs_of
from tests.runtime.gateway.versions import END, OTHER_END, version
from tritonforge.runtime.gateway.answer_text import end_ids_of
from tritonforge.runtime.gateway.dialects import tensorrt_llm as dialect
from tritonforge.runtime.gateway.engine import EngineCall, Tokens, new_request_id
from tritonforge.runtime.gateway.prompt import build_prompt
from tritonforge.runtime.gateway.request import parse_request


def call_of(**fields: object) -> EngineCall:
    request = parse_request(inputs_of(text_input="ab", **fields))
    return dialect.generate_call(request, build_prompt(request, version(3)), version(3), request_id="r")


def values(call: EngineCall) -> dict[str, Any]:
    return {name: array.tolist() for name, array in call.inputs.items()}


def test_a_plain_request_sends_only_what_it_needs() -> None:
    call = call_of()
    assert (call.engine_model, call.engine_version, call.request_id) == ("m_engine_v3", 3, "r")
    assert call.outputs == ("output_ids", "sequence_length")
    assert values(call) == {
        "input_ids": [[97, 98]],
        "input_lengths": [[2]],
        "request_output_len": [[30]],
        "end_id": [[END]],
        "pad_id": [[END]],
        "streaming": [[False]],
        "stop_words_list": [[[OTHER_END], [1]]],
    }


def test_every_tensor_has_the_backends_type() -> None:
    call = call_of(
        temperature=0.5, top_k=2, top_p=0.5, repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0,
        random_seed=1, min_length=1, stop_words="x", bad_words="y", return_log_probs=True, stream=True,
    )  # fmt: skip
    kinds = {name: array.dtype.name for name, array in call.inputs.items()}
    floats = {"temperature", "runtime_top_p", "repetition_penalty", "presence_penalty", "frequency_penalty"}
    flags = {"streaming", "return_log_probs"}
    for name, kind in kinds.items():
        named = "float32" if name in floats else "bool" if name in flags else "int32"
        assert kind == ("uint64" if name == "random_seed" else named), name
    assert call.outputs == ("output_ids", "sequence_length", "cum_log_probs", "output_log_probs")


def test_an_input_is_sent_under_both_names_to_an_engine_that_may_read_either() -> None:
    served = replace(version(), input_aliases={"min_length": "min_tokens", "random_seed": "seed"})
    request = parse_request(inputs_of(text_input="ab", min_length=3))

    call = dialect.generate_call(request, build_prompt(request, served), served, request_id="r")

    assert call.inputs["min_tokens"].tolist() == call.inputs["min_length"].tolist() == [[3]]
    assert not {"seed", "random_seed"} & call.inputs.keys()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {}),
        ({"temperature": 0.0}, {"runtime_top_k": [[1]]}),
        ({"temperature": 0.0, "top_p": 0.5, "top_k": 9}, {"runtime_top_k": [[1]]}),
        ({"temperature": 0.5}, {"temperature": [[0.5]], "runtime_top_p": [[1.0]]}),
        ({"temperature": 0.5, "top_k": 3}, {"temperature": [[0.5]], "runtime_top_k": [[3]]}),
        ({"top_p": 0.25}, {"runtime_top_p": [[0.25]]}),
        ({"random_seed": 7, "min_length": 2}, {"random_seed": [[7]], "min_length": [[2]]}),
    ],
)
def test_sampling_is_spelled_so_that_every_engine_understands_the_same(
    fields: dict[str, object], expected: dict[str, object]
) -> None:
    plain = values(call_of())
    assert {name: value for name, value in values(call_of(**fields)).items() if name not in plain} == expected


@pytest.mark.parametrize(
    ("fields", "streams"),
    [({}, False), ({"stream": True}, True), ({"stop_words": "x"}, True), ({"stop_words": ""}, False)],
)
def test_the_engine_streams_only_when_its_tokens_are_needed_one_by_one(
    fields: dict[str, object], streams: bool
) -> None:
    assert values(call_of(**fields))["streaming"] == [[streams]]


def test_the_requests_end_token_replaces_the_checkpoints() -> None:
    sent = values(call_of(end_id=5, pad_id=6))
    assert (sent["end_id"], sent["pad_id"]) == ([[5]], [[6]])
    assert "stop_words_list" not in sent
    request = parse_request(inputs_of(text_input="a", end_id=-1))
    assert end_ids_of(request, version()) == frozenset()


def test_words_are_listed_with_their_ends() -> None:
    assert dialect.word_list([[1, 2], [3]]).tolist() == [[[1, 2, 3], [2, 3, -1]]]
    assert dialect.word_list([]).tolist() == [[[0], [-1]]]


def test_a_bad_word_is_sent_with_and_without_a_space_before_it() -> None:
    assert values(call_of(bad_words="ab"))["bad_words_list"] == [[[97, 98, 32, 97, 98], [2, 5, -1, -1, -1]]]


def test_a_stop_carries_the_same_id_and_all_inputs_that_are_not_optional() -> None:
    stop = dialect.stop_call(call_of())
    assert (stop.request_id, stop.engine_model, stop.engine_version) == ("r", "m_engine_v3", 3)
    assert values(stop) == {
        "input_ids": [[0]], "input_lengths": [[1]], "request_output_len": [[1]], "stop": [[True]]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ({}, None),
        ({"output_ids": np.zeros((1, 1, 0), np.int32)}, Tokens(())),
        ({"output_ids": np.array([[[4]]], np.int32), "sequence_length": np.array([[0]], np.int32)}, Tokens(())),
        ({"output_ids": np.array([[[4, 5]]], np.int32)}, Tokens((4, 5))),
        ({"output_ids": np.array([[4, 5]], np.int32)}, Tokens((4, 5))),
        ({"output_ids": np.array([[[4, 5], [6, 7]]], np.int32)}, Tokens((4, 5))),
        (
            {"output_ids": np.array([[[4, 0, 0]]], np.int32), "sequence_length": np.array([[1]], np.int32)},
            Tokens((4,)),
        ),
        (
            {"output_ids": np.array([[[4]]], np.int32), "sequence_length": np.array([[9]], np.int32)},
            Tokens((4,)),
        ),
        (
            {
                "output_ids": np.array([[[4]]], np.int32),
                "output_log_probs": np.array([[[-1.0, -0.5]]], np.float32),
                "cum_log_probs": np.array([[-1.5]], np.float32),
            },
            Tokens((4,), (-0.5,), -1.5),
        ),
    ],
)
def test_new_tokens_are_read_from_every_known_form(outputs: dict[str, np.ndarray], expected: Tokens | None) -> None:
    assert dialect.read_tokens(outputs) == expected


def test_no_id_of_a_call_begins_as_a_number_and_no_two_are_the_same() -> None:
    ids = {new_request_id() for _ in range(200)}

    assert len(ids) == 200
    assert not [one for one in ids if one[0].isdigit()]
