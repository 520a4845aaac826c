import json

import pytest

from tritonforge.client.text import chunk_of, completion, question, text_fields
from tritonforge.client.types import Chunk, GenerateRequest, ModelConfig, TensorInfo
from tritonforge.errors import InvalidRequest, UsageBug

INPUTS = {
    "text_input": "BYTES",
    "messages": "BYTES",
    "max_tokens": "INT32",
    "stream": "BOOL",
    "temperature": "FP32",
    "random_seed": "UINT64",
    "stop_words": "BYTES",
    "return_log_probs": "BOOL",
}
CONFIG = ModelConfig("m", "python", 8, True, tuple(TensorInfo(k, v, (1,)) for k, v in INPUTS.items()), (), {})


def fields(stream: bool = False, **given: object) -> dict[str, object]:
    request = GenerateRequest("m", given, stream=stream)
    return {field.name: field.value for field in text_fields(request, CONFIG, server="host:1")}


def test_a_question_is_a_prompt_or_a_chat():
    assert question("Hi", None, {}) == {"text_input": "Hi"}
    chat = question(None, [{"role": "user", "content": "Grüße"}], {})
    assert json.loads(str(chat["messages"])) == [{"role": "user", "content": "Grüße"}]
    for prompt, messages in ((None, None), ("Hi", [])):
        with pytest.raises(UsageBug, match="either a prompt or messages"):
            question(prompt, messages, {})


def test_what_was_not_given_is_not_sent():
    assert question("Hi", None, {"max_tokens": None, "stop_words": [], "temperature": 0}) == {
        "text_input": "Hi",
        "temperature": 0,
    }


def test_stream_is_sent_when_the_model_has_it():
    assert fields(stream=True, text_input="Hi") == {"text_input": "Hi", "stream": True}


def test_an_input_that_the_model_needs_is_not_left_out():
    needed = TensorInfo("max_tokens", "INT32", (1,), optional=False)
    config = ModelConfig("m", "", 8, True, (TensorInfo("text_input", "BYTES", (1,), optional=False), needed), (), {})
    with pytest.raises(InvalidRequest, match="model 'm' needs max_tokens, which the request does not give") as caught:
        text_fields(GenerateRequest("m", {"text_input": "Hi"}, stream=False), config, server="host:1")
    assert "--max-tokens" in (caught.value.hint or "")
    given = GenerateRequest("m", {"text_input": "Hi", "max_tokens": 2}, stream=False)
    assert len(text_fields(given, config, server="host:1")) == 2


def test_whole_numbers_are_fine_where_the_model_wants_floats():
    assert fields(temperature=1) == {"temperature": 1.0, "stream": False}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("text_input", 3, "text_input is 3; expected a text"),
        ("text_input", "\ud800", "expected a text"),
        ("max_tokens", "8", "max_tokens is '8'; expected a whole number from -2147483648 to 2147483647"),
        ("max_tokens", 2**31, f"max_tokens is {2**31}; expected a whole number"),
        ("max_tokens", True, "max_tokens is True; expected a whole number"),
        ("random_seed", -1, f"random_seed is -1; expected a whole number from 0 to {2**64 - 1}"),
        ("temperature", float("nan"), "temperature is nan; expected a finite number"),
        ("return_log_probs", 1, "return_log_probs is 1; expected true or false"),
        ("stop_words", "end", "stop_words is 'end'; expected a list of texts"),
        ("stop_words", ["a", None], "stop_words is None; expected a text"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_what_was_expected(name: str, value: object, expected: str):
    with pytest.raises(InvalidRequest) as caught:
        fields(**{name: value})
    assert expected in caught.value.message


def test_a_field_that_the_model_does_not_have_points_at_the_nearest():
    with pytest.raises(InvalidRequest, match="model 'm' takes no max_token") as caught:
        fields(max_token=3)
    assert caught.value.hint == "did you mean 'max_tokens'?"


def test_a_chunk_is_read_from_outputs_of_either_protocol():
    grpc = {
        "text_output": [b"h\xc3\xa9"],
        "finish_reason": [b""],
        "engine_version": [2],
        "output_log_probs": [-1.0, -2],
    }
    http = {"text_output": ["hé"], "finish_reason": [""], "engine_version": [2], "output_log_probs": [-1.0, -2]}
    expected = Chunk("hé", 4, engine_version=2, output_log_probs=(-1.0, -2.0))
    assert chunk_of(grpc, index=4) == chunk_of(http, index=4) == expected


def test_a_completion_joins_the_chunks_and_measures_to_the_first_text():
    arrivals = [
        (Chunk("", 0, engine_version=2), 10.1),
        (Chunk("a", 1, output_log_probs=(-1.0,)), 10.2),
        (Chunk("b", 2, "stop", prompt_tokens=5, completion_tokens=2, output_log_probs=(-2.0,)), 10.3),
    ]
    whole = completion(arrivals, start_s=10.0, end_s=10.5)
    assert (whole.text, whole.finish_reason, whole.engine_version) == ("ab", "stop", 2)
    assert (whole.prompt_tokens, whole.completion_tokens, whole.output_log_probs) == (5, 2, (-1.0, -2.0))
    assert whole.ttft_ms == pytest.approx(200)
    assert whole.total_ms == pytest.approx(500)


def test_an_empty_answer_has_its_first_text_at_the_end():
    whole = completion([(Chunk("", 0, "stop"), 10.1)], start_s=10.0, end_s=10.2)
    assert whole.ttft_ms == whole.total_ms == pytest.approx(200)
