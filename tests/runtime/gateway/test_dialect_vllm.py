"""The tensors of the vllm backend: what goes to it, and what comes back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.gateway.properties import SAME_EXAMPLES
from tests.runtime.gateway.requests import inputs_of
from tests.runtime.gateway.versions import END, OTHER_END, version
from tritonforge.runtime.gateway.dialects import vllm
from tritonforge.runtime.gateway.engine import EngineCall, Failure, Text
from tritonforge.runtime.gateway.prompt import build_prompt
from tritonforge.runtime.gateway.request import parse_request
from tritonforge.runtime.tensors import RequestRejected

SERVED = replace(version(3), dialect="vllm")


def call_of(**fields: object) -> EngineCall:
    request = parse_request(inputs_of(text_input="ab", **fields))
    return vllm.generate_call(request, build_prompt(request, SERVED), SERVED, request_id="r")


def parameters_of(**fields: object) -> dict[str, Any]:
    return json.loads(call_of(**fields).inputs["sampling_parameters"].item())


def strings(*values: bytes) -> np.ndarray:
    return np.array(values, dtype=object)


def test_a_plain_request_asks_for_counts_and_never_for_the_prompt() -> None:
    call = call_of()
    assert (call.engine_model, call.engine_version, call.request_id, call.streams) == ("m_engine_v3", 3, "r", False)
    assert all(array.shape == (1,) for array in call.inputs.values())  # no batch dimension
    assert {name: array.item() for name, array in call.inputs.items() if array.dtype == np.bool_} == {
        "stream": False, "exclude_input_in_output": True, "return_finish_reason": True,
        "return_num_input_tokens": True, "return_num_output_tokens": True,
    }  # fmt: skip
    assert call.inputs["text_input"].item() == b"ab"
    assert set(call.outputs) == {"text_output", "finish_reason", "num_input_tokens", "num_output_tokens"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"temperature": 0.0}),
        ({"temperature": 0.0, "top_k": 9, "top_p": 0.5}, {"temperature": 0.0}),
        ({"top_k": 1}, {"temperature": 0.0}),
        ({"temperature": 0.5}, {"temperature": 0.5, "top_p": 1.0}),
        ({"top_p": 0.25}, {"temperature": 1.0, "top_p": 0.25}),
        ({"temperature": 0.5, "top_k": 3}, {"temperature": 0.5, "top_k": 3}),
        ({"min_length": 2, "random_seed": 7}, {"temperature": 0.0, "min_tokens": 2, "seed": 7}),
        ({"stop_words": ["x"]}, {"temperature": 0.0, "stop": ["x"], "include_stop_str_in_output": True}),
        ({"bad_words": ["x", "y"]}, {"temperature": 0.0, "bad_words": ["x", "y"]}),
        ({"return_log_probs": True}, {"temperature": 0.0, "logprobs": 0}),
    ],
)
def test_sampling_means_the_same_as_with_other_engines(fields: dict[str, object], expected: dict[str, object]) -> None:
    always = {"max_tokens": 30, "stop_token_ids": [END, OTHER_END]}
    assert parameters_of(**fields) == {**always, **expected}


@pytest.mark.parametrize(
    ("end_id", "expected"),
    [(5, {"ignore_eos": True, "stop_token_ids": [5]}), (-1, {"ignore_eos": True})],
)
def test_the_requests_end_token_replaces_the_checkpoints(end_id: int, expected: dict[str, object]) -> None:
    assert parameters_of(end_id=end_id) == {"max_tokens": 30, "temperature": 0.0, **expected}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": 2.5}, "temperature is 2.5; engine version 3 takes 0 to 2"),
        ({"presence_penalty": 2.5}, "presence_penalty is 2.5; engine version 3 takes -2 to 2"),
        ({"frequency_penalty": -3.0}, "frequency_penalty is -3; engine version 3 takes -2 to 2"),
        ({"random_seed": 2**63}, f"random_seed is {2**63}; engine version 3 takes 0 to {2**63 - 1}"),
    ],
)
def test_values_that_its_backend_would_refuse_without_naming_them(fields: dict[str, object], message: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        call_of(**fields)
    assert str(caught.value) == message


def test_a_call_is_stopped_by_hanging_up_and_proved_alive_without_the_engine() -> None:
    assert vllm.stop_call(call_of()) is None
    probe = vllm.probe_call(call_of(), request_id="p")
    assert (probe.engine_model, probe.engine_version, probe.request_id, probe.dialect) == (
        "m_engine_v3",
        3,
        "p",
        "vllm",
    )
    assert "lora_name" in json.loads(probe.inputs["sampling_parameters"].item())


def test_responses_are_read_one_by_one() -> None:
    read = vllm.reader()
    first = {
        "text_output": strings(b"Gr\xc3"),  # half a character, as no engine should send it
        "finish_reason": strings(b"None"),
        "num_input_tokens": np.array(2, dtype=np.uint32),  # the backend sends it without a dimension
        "num_output_tokens": np.array([1], dtype=np.uint32),
    }
    last = {**first, "text_output": strings(b"\xbcn"), "finish_reason": strings(b"stop")}
    assert read(first) == Text("Gr", tokens=1, prompt_tokens=2)
    assert read(last) == Text("ün", tokens=1, prompt_tokens=2, finish_reason="stop")


def test_log_probabilities_are_those_of_the_chosen_tokens() -> None:
    tokens = [{"7": {"logprob": -0.5, "rank": 2}, "9": {"logprob": -0.1, "rank": 1}}, {"8": {"logprob": -2}}]
    outputs = {
        "text_output": strings(b"a"),
        "logprobs": strings(json.dumps(tokens).encode()),
        "cumulative_logprob": np.array([-2.5], dtype=np.float32),
    }
    event = vllm.reader()(outputs)
    assert isinstance(event, Text)
    assert (event.log_probs, event.cum_log_prob) == ((-0.5, -2.0), -2.5)
    nothing = {"text_output": strings(b"a"), "logprobs": strings(b"null"), "cumulative_logprob": np.array([np.nan])}
    assert vllm.reader()(nothing) == Text("a")


def test_what_is_no_answer() -> None:
    assert vllm.reader()({}) is None
    given_up = {"text_output": strings(b""), "finish_reason": strings(b"abort")}
    assert vllm.reader()(given_up) == Failure("it gave the request up: finish_reason is 'abort'")


@SAME_EXAMPLES
@given(st.text(max_size=20), st.lists(st.integers(0, 80), max_size=4))
def test_any_cut_of_the_bytes_gives_the_same_text(text: str, cuts: list[int]) -> None:
    raw = text.encode("utf-8", "replace")
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    read = vllm.reader()
    events = [
        read({"text_output": strings(raw[a:b]), "finish_reason": strings(b"stop" if b == len(raw) else b"None")})
        for a, b in zip(edges, edges[1:], strict=False)
    ]
    assert "".join(event.text for event in events if isinstance(event, Text)) == raw.decode()
