"""The tensors of upstream's model on the LLM API: what goes to it, and what comes back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.gateway.properties import SAME_EXAMPLES
from tests.runtime.gateway.requests import inputs_of
from tests.runtime.gateway.versions import END, version
from tritonforge.repository.text_engines import LLMAPI_INPUTS, LLMAPI_OUTPUTS
from tritonforge.runtime.gateway.dialects import llmapi
from tritonforge.runtime.gateway.engine import EngineCall, Event, Failure, Text
from tritonforge.runtime.gateway.prompt import build_prompt
from tritonforge.runtime.gateway.request import parse_request
from tritonforge.runtime.tensors import RequestRejected

SERVED = replace(version(3), dialect="llmapi")
TYPES = {"object": "TYPE_STRING", "bool": "TYPE_BOOL", "int32": "TYPE_INT32", "float32": "TYPE_FP32",
         "uint64": "TYPE_UINT64"}  # fmt: skip


def call_of(**fields: object) -> EngineCall:
    request = parse_request(inputs_of(text_input="ab", **fields))
    return llmapi.generate_call(request, build_prompt(request, SERVED), SERVED, request_id="r")


def response(text: str, reason: str = "None") -> dict[str, np.ndarray]:
    return {"text_output": np.array([text.encode()], object), "finish_reason": np.array([reason.encode()], object)}


def read_all(*responses: dict[str, np.ndarray]) -> list[Event | None]:
    read = llmapi.reader()
    return [read(one) for one in responses]


def test_a_plain_request_sends_only_what_it_needs() -> None:
    call = call_of()
    assert (call.engine_model, call.engine_version, call.request_id, call.dialect) == ("m_engine_v3", 3, "r", "llmapi")
    assert {name: array.tolist() for name, array in call.inputs.items()} == {
        "text_input": [b"ab"],
        "streaming": [False],
        "sampling_param_max_tokens": [30],
        "sampling_param_top_k": [1],
        "sampling_param_exclude_input_from_output": [True],
        "return_finish_reason": [True],
    }
    assert call.outputs == ("text_output", "finish_reason")


def test_every_tensor_is_one_of_upstreams_of_its_type_and_shape() -> None:
    call = call_of(
        temperature=0.5, top_k=2, top_p=0.5, presence_penalty=0.1, frequency_penalty=0.1, random_seed=2**64 - 1,
        stop_words=["x", "y"], stream=True,
    )  # fmt: skip
    known = {tensor.name: tensor for tensor in LLMAPI_INPUTS}
    for name, array in call.inputs.items():
        assert TYPES[array.dtype.name] == known[name].type, name
        assert array.ndim == len(known[name].dims), name
        assert known[name].dims in {(-1,), array.shape}, name
    assert set(call.outputs) <= {tensor.name for tensor in LLMAPI_OUTPUTS}
    assert call.inputs["sampling_param_stop"].tolist() == [b"x", b"y"]


def test_the_checkpoints_own_end_token_may_be_named_and_no_other() -> None:
    assert call_of(end_id=END, pad_id=7).inputs.keys() == call_of().inputs.keys()
    with pytest.raises(RequestRejected, match=r"end_id is 5; engine version 3 ends at the checkpoint's own: 0, 128"):
        call_of(end_id=5)


def test_a_call_is_stopped_by_hanging_up_and_proved_alive_without_the_engine() -> None:
    assert llmapi.stop_call(call_of()) is None
    assert llmapi.probe_call(call_of(), request_id="p").inputs["text_input"].shape == (0,)


def test_only_what_is_new_is_read_of_texts_that_repeat_all_before() -> None:
    events = read_all(response("a"), response("ab"), response("ab"), response("abc", "length"))
    assert events == [Text("a"), Text("b"), Text(""), Text("c", finish_reason="length")]


def test_a_character_that_is_not_whole_is_waited_for() -> None:
    events = read_all(response("a\ufffd"), response("a你"), response("a你\ufffd", "stop"))
    assert events == [Text("a"), Text("你"), Text("\ufffd", finish_reason="stop")]


def test_the_start_of_a_stop_word_is_taken_back() -> None:
    events = read_all(response("a b"), response("a ", "stop"))
    assert events == [Text("a b"), Text("", finish_reason="stop", retracted=1)]


def test_an_engine_that_sends_only_what_is_new_is_understood_too() -> None:
    events = read_all(response("one"), response(" two"), response(" three", "stop"))
    assert [event.text for event in events if isinstance(event, Text)] == ["one", " two", " three"]


def test_what_is_no_answer() -> None:
    assert llmapi.reader()({}) is None
    assert read_all(response("a", "timeout")) == [Failure("it gave the request up: finish_reason is 'timeout'")]


@SAME_EXAMPLES
@given(st.text(st.characters(exclude_characters="\ufffd", exclude_categories=["Cs"]), max_size=30), st.data())
def test_any_growth_gives_the_same_text(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    events = read_all(*(response(text[:cut]) for cut in cuts), response(text, "stop"))
    assert "".join(event.text for event in events if isinstance(event, Text)) == text
