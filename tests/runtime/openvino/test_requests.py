"""What is made of the tensors of one request, and every refusal with its words."""

import numpy as np
import pytest

from tritonforge.runtime.openvino.protocol import Generation
from tritonforge.runtime.openvino.requests import NEUTRAL_VALUES, REFUSED, is_stop, read_request
from tritonforge.runtime.openvino.settings import EngineSettings
from tritonforge.runtime.tensors import Inputs, RequestRejected

SETTINGS = EngineSettings(
    precision="int8",
    fused_attention=True,
    num_threads=None,
    kv_cache_precision="u8",
    kv_cache_bytes=2**20,
    kv_cache_blocks=10,
    kv_cache_tokens=320,
    enable_prefix_caching=True,
    max_num_batched_tokens=256,
    max_batch_size=4,
    max_input_len=8,
    max_seq_len=16,
    vocab_size=100,
)
UNFUSED = EngineSettings(**{**{name: getattr(SETTINGS, name) for name in SETTINGS.__slots__}, "fused_attention": False})


def tensors(**values: object) -> Inputs:
    """A sound request, with these tensors in place of its own; None leaves one out."""
    arrays = {
        "input_ids": np.array([[5, 7, 11]], np.int32),
        "input_lengths": np.array([[3]], np.int32),
        "request_output_len": np.array([[4]], np.int32),
    }
    for name, value in values.items():
        arrays[name] = value if isinstance(value, np.ndarray) else np.array([[value]])
        if value is None:
            del arrays[name]
    return Inputs(arrays)


def read(**values: object) -> Generation:
    return read_request(tensors(**values), SETTINGS).generation


def words(*cut: list[int]) -> np.ndarray:
    """Words in the backend's layout, [1, 2, n]."""
    ids = [token for word in cut for token in word] or [0]
    ends = list(np.cumsum([len(word) for word in cut], dtype=int))
    return np.array([[ids, ends + [-1] * (len(ids) - len(ends))]], np.int32)


def test_a_plain_request_is_greedy() -> None:
    generation = read()
    assert generation == Generation((5, 7, 11), 4, seed=generation.seed)
    assert not read_request(tensors(), SETTINGS).streaming
    assert read_request(tensors(streaming=True), SETTINGS).streaming


def test_shapes_with_and_without_the_batch_dimension_mean_the_same() -> None:
    flat = read(input_ids=np.array([5, 7, 11], np.int32), request_output_len=np.array(4, np.int32))
    assert flat.input_ids == (5, 7, 11)
    assert flat.max_new_tokens == 4


def test_ids_beyond_input_lengths_are_padding() -> None:
    assert read(input_lengths=2).input_ids == (5, 7)
    assert read(input_lengths=None).input_ids == (5, 7, 11)


@pytest.mark.parametrize(
    ("values", "words_of_refusal"),
    [
        ({"input_ids": None}, "input_ids is empty; expected at least 1 token id"),
        ({"input_ids": np.zeros((1, 0), np.int32)}, "input_ids is empty"),
        ({"input_lengths": 0}, "input_ids is empty"),
        ({"input_lengths": 4}, "input_lengths is 4; expected at most the 3 ids"),
        ({"input_ids": np.ones((1, 9), np.int32), "input_lengths": 9}, "9 tokens; expected at most 8 .max_input_len"),
        ({"input_ids": np.array([[5, 100, 7]])}, "holds 100 at position 1; expected 0 to 99"),
        ({"input_ids": np.array([[5, 7, -1]])}, "holds -1 at position 2; expected 0 to 99"),
        ({"input_ids": np.ones((2, 3), np.int32)}, "a batch of 2; expected one request"),
        ({"input_ids": np.ones((1, 3), np.float32)}, "input_ids has type float32; expected integers"),
        ({"request_output_len": None}, "request_output_len is missing"),
        ({"request_output_len": 0}, "request_output_len is 0; expected an integer of at least 1"),
        ({"request_output_len": -5}, "request_output_len is -5"),
        ({"request_output_len": 14}, "request_output_len is 14; expected at most 13: 3 prompt tokens .* 16"),
        ({"min_length": 5}, "min_length is 5; expected at most request_output_len, which is 4"),
        ({"min_length": -1}, "min_length is -1"),
        ({"end_id": -2}, "end_id is -2"),
        ({"temperature": -0.5}, "temperature is -0.5; expected a finite number of at least 0"),
        ({"temperature": np.nan}, "temperature is nan"),
        ({"runtime_top_k": -1}, "runtime_top_k is -1"),
        ({"runtime_top_p": 1.5}, "runtime_top_p is 1.5; expected a finite number from 0 to 1"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0; expected more than 0"),
        ({"presence_penalty": 2.5}, "presence_penalty is 2.5; expected a finite number from -2 to 2"),
        ({"frequency_penalty": -3.0}, "frequency_penalty is -3"),
        ({"random_seed": -1}, "random_seed is -1"),
        ({"streaming": 1}, "streaming has type int64; expected true or false"),
        ({"beam_width": 2}, "beam_width is 2; the embedded engine serves 1 only"),
        ({"exclude_input_in_output": False}, "exclude_input_in_output is False; the embedded engine serves True only"),
        ({"bad_words_list": words([5])}, "bad_words_list is given"),
        ({"stop_words_list": np.array([[[1, 2], [3, -1]]])}, "ends at 3; expected 1 to 2"),
        ({"stop_words_list": np.array([[[1, 2], [2, 1]]])}, "ends at 1; expected 3 to 2"),
        ({"stop_words_list": np.array([1, 2, 3])}, r"shape \[3\] .* expected integers of shape \[2, n\]"),
        ({"stop_words_list": np.ones((2, 2, 3), int)}, r"stop_words_list has shape \[2, 2, 3\]"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(values: dict[str, object], words_of_refusal: str) -> None:
    with pytest.raises(RequestRejected, match=words_of_refusal):
        read(**values)


@pytest.mark.parametrize("name", REFUSED)
def test_inputs_of_other_engines_are_refused(name: str) -> None:
    with pytest.raises(RequestRejected, match=f"{name} is given; the embedded engine does not serve it"):
        read(**{name: 1})


@pytest.mark.parametrize("name", NEUTRAL_VALUES)
def test_inputs_that_ask_for_nothing_are_taken(name: str) -> None:
    assert read(**{name: NEUTRAL_VALUES[name]}).input_ids == (5, 7, 11)


def test_empty_word_lists_are_taken() -> None:
    generation = read(bad_words_list=words(), stop_words_list=words())
    assert generation.stop_ids == generation.stop_sequences == ()


def test_single_stop_words_and_the_end_id_are_stop_ids() -> None:
    generation = read(end_id=2, stop_words_list=words([9], [3, 4], [2], [5, 6, 7]))
    assert generation.stop_ids == (2, 9)
    assert generation.stop_sequences == ((3, 4), (5, 6, 7))


def test_stop_words_come_with_and_without_the_batch_dimension() -> None:
    assert read(stop_words_list=words([3, 4])[0]).stop_sequences == ((3, 4),)


def test_stops_that_can_never_come_are_left_out() -> None:
    generation = read(end_id=100, stop_words_list=words([3, 999], [4]))
    assert generation.stop_ids == (4,)
    assert generation.stop_sequences == ()
    assert read(end_id=-1).stop_ids == ()


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": 0.0},
        {"temperature": 1e-9, "runtime_top_p": 0.9},
        {"runtime_top_k": 1, "temperature": 0.7},
        {"runtime_top_p": 0.0, "temperature": 1.0},
        {"runtime_top_k": 0, "runtime_top_p": 0.0},
        {"runtime_top_k": 0},
    ],
)
def test_sampling_without_a_choice_is_greedy(values: dict[str, object]) -> None:
    assert read(**values).greedy


def test_sampling_values_are_taken() -> None:
    generation = read(temperature=0.7, runtime_top_k=40, runtime_top_p=0.0, random_seed=2**64 - 1, min_length=2)
    assert not generation.greedy
    assert (generation.temperature, generation.top_k, generation.top_p) == (0.7, 40, 1.0)
    assert (generation.seed, generation.min_new_tokens) == (2**64 - 1, 2)
    assert read(runtime_top_p=0.5).top_p == 0.5


def test_without_a_seed_two_requests_get_two() -> None:
    assert read().seed != read().seed


def test_an_engine_without_fused_attention_refuses_log_probabilities() -> None:
    assert read(return_log_probs=True).log_probs
    with pytest.raises(RequestRejected, match="context_fmha: false gives no log probabilities"):
        read_request(tensors(return_log_probs=True), UNFUSED)


def test_a_stop_request_is_told_by_its_flag() -> None:
    assert is_stop(tensors(stop=True))
    assert not is_stop(tensors(stop=False))
    assert not is_stop(tensors())
