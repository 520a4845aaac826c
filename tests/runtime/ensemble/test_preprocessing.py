"""First step of the ensemble: what the engine gets for a batch of prompts, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.gateway import tokenizer_folders
from tests.runtime.gateway.tokenizer_folders import BYTE_LEVEL, GLM4, KINDS, SENTENCEPIECE, SPACE_MARKED
from tests.runtime.gateway.versions import END, OTHER_END, version
from tritonforge.runtime.ensemble.preprocessing import Preprocessing, UnservedInputs
from tritonforge.runtime.ensemble.words import spellings, word_lists
from tritonforge.runtime.gateway.detokenize import Detokenizer
from tritonforge.runtime.gateway.tokenization.base import Tokenizer
from tritonforge.runtime.tensors import RequestRejected


def texts(*rows: list[str]) -> np.ndarray:
    return np.array([[text.encode() for text in row] for row in rows], dtype=np.object_)


def ask(*prompts: str, max_tokens: int = 5, **more: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "QUERY": texts(*([prompt] for prompt in prompts)),
        "REQUEST_OUTPUT_LEN": np.full((len(prompts), 1), max_tokens, np.int32),
        **more,
    }


def run(*prompts: str, adds_special_tokens: bool = True, **more: Any) -> Mapping[str, Any]:
    step = Preprocessing(version(), adds_special_tokens=adds_special_tokens)
    return {name: array.tolist() for name, array in step.run(ask(*prompts, **more)).items()}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Tokenizer]:
    folder = tmp_path_factory.mktemp("tokenizers")
    return {kind: tokenizer_folders.load(kind, folder / kind) for kind in KINDS}


def test_one_prompt_gives_every_tensor_its_neutral_form() -> None:
    assert run("ab") == {
        "INPUT_ID": [[97, 98]],
        "REQUEST_INPUT_LEN": [[2]],
        "DECODER_INPUT_ID": [[END]],
        "REQUEST_DECODER_INPUT_LEN": [[1]],
        "REQUEST_OUTPUT_LEN": [[5]],
        "STOP_WORDS_IDS": [[[OTHER_END], [1]]],  # the second end token; the backend takes one as such
        "BAD_WORDS_IDS": [[[], []]],
        "EMBEDDING_BIAS": [[]],
        "OUT_END_ID": [[END]],
        "OUT_PAD_ID": [[END]],
    }


def test_every_tensor_has_the_type_of_upstreams_config() -> None:
    step = Preprocessing(version(), adds_special_tokens=True)
    words, weights = texts(["a"]), np.ones((1, 1), np.float32)
    extra = np.array([[7]], np.uint64)
    made = step.run(ask("ab", EMBEDDING_BIAS_WORDS=words, EMBEDDING_BIAS_WEIGHTS=weights, PROMPT_TABLE_EXTRA_ID=extra))
    kinds = {name: array.dtype.name for name, array in made.items()}
    assert kinds.pop("EMBEDDING_BIAS") == "float32"
    assert kinds.pop("OUT_PROMPT_TABLE_EXTRA_IDS") == "uint64"
    assert set(kinds.values()) == {"int32"}


def test_shorter_prompts_of_a_batch_are_padded_at_their_end() -> None:
    made = run("abc", "d", PAD_ID=np.array([[7], [9]], np.int32))
    assert made["INPUT_ID"] == [[97, 98, 99], [100, 9, 9]]
    assert made["REQUEST_INPUT_LEN"] == [[3], [1]]
    assert made["OUT_PAD_ID"] == [[7], [9]]
    assert made["REQUEST_OUTPUT_LEN"] == [[5], [5]]


def test_an_end_token_of_the_request_takes_the_place_of_the_checkpoints() -> None:
    made = run("ab", END_ID=np.array([[65]], np.int32))
    assert (made["OUT_END_ID"], made["STOP_WORDS_IDS"]) == ([[65]], [[[], []]])


def test_words_of_a_batch_share_one_width() -> None:
    words = texts(["xy", ""], ["z", "w"])
    made = run("a", "b", STOP_WORDS_DICT=words, END_ID=np.array([[1], [1]], np.int32))
    # Each word at the start of a text, and behind a space.
    assert made["STOP_WORDS_IDS"] == [
        [[120, 121, 32, 120, 121, 0], [2, 5, -1, -1, -1, -1]],
        [[122, 32, 122, 119, 32, 119], [1, 3, 4, 6, -1, -1]],
    ]


def test_bad_words_are_lists_as_well_unless_the_engine_cannot_serve_them() -> None:
    assert run("a", BAD_WORDS_DICT=texts(["x"]))["BAD_WORDS_IDS"] == [[[120, 32, 120], [1, 3, -1]]]
    step = Preprocessing(replace(version(), unserved_inputs=("bad_words",)), adds_special_tokens=True)
    with pytest.raises(RequestRejected, match="bad_words is given; engine version 1 cannot serve it, expected none"):
        step.run(ask("a", BAD_WORDS_DICT=texts(["x"])))
    assert step.run(ask("a", BAD_WORDS_DICT=texts([""])))["BAD_WORDS_IDS"].size == 0


def test_a_bias_is_added_to_every_token_of_its_word() -> None:
    weights = np.array([[1.5, -2.0, 4.0], [0.0, 0.0, 0.0]], np.float32)
    made = run("a", "b", EMBEDDING_BIAS_WORDS=texts(["ab", "b", ""], ["", "", ""]), EMBEDDING_BIAS_WEIGHTS=weights)
    bias = np.array(made["EMBEDDING_BIAS"])
    assert bias.shape == (2, 129)
    assert {index: bias[0, index] for index in bias[0].nonzero()[0].tolist()} == {97: 1.5, 98: -0.5}
    assert not bias[1].any()


def test_ids_of_a_prompt_table_mark_virtual_tokens_only() -> None:
    made = run("ab", PROMPT_TABLE_EXTRA_ID=np.array([[7]], np.uint64))
    assert made["OUT_PROMPT_TABLE_EXTRA_IDS"] == [[0, 0]]
    assert "OUT_PROMPT_TABLE_EXTRA_IDS" not in run("ab")


def test_a_prompt_embedding_table_is_carried_through() -> None:
    table = np.arange(6, dtype=np.float16).reshape(1, 2, 3)
    assert run("ab", PROMPT_EMBEDDING_TABLE=table)["OUT_PROMPT_EMBEDDING_TABLE"] == table.tolist()


@pytest.mark.parametrize(
    ("prompt", "more", "message"),
    [
        ("", {}, "text_input is empty; expected a prompt of at least one character"),
        ("a" * 30, {}, r"text_input has 30 bytes; no 20 tokens \(max_input_len\) hold that many"),
        ("a", {"max_tokens": 0}, "max_tokens is 0; expected an integer from 1 to"),
        ("a", {"max_tokens": -3}, "max_tokens is -3; expected an integer from 1 to"),
        ("a", {"max_tokens": 40}, r"max_tokens is 40; expected at most 39, what a prompt of 1 leaves of 40"),
        ("a", {"DECODER_QUERY": texts(["b"])}, "decoder_text_input is given; the engine is a text decoder alone"),
        ("a", {"IMAGE_URL": texts(["x"])}, "image_url_input is given"),
        ("a", {"VIDEO_BYTES": np.zeros((1, 1, 1, 1, 1), np.uint8)}, "video_bytes_input is given"),
        ("a", {"IMAGE": np.zeros((1, 3, 224, 224), np.float16)}, "image_input is given"),
        ("a", {"STOP_WORDS_DICT": texts(["x"] * 300)}, "stop_words has 300 words; expected at most 256"),
        ("a", {"EMBEDDING_BIAS_WORDS": texts(["x"])}, "embedding_bias_words has 1 words and embedding_bias_weights 0"),
        (
            "a",
            {"EMBEDDING_BIAS_WORDS": texts(["x"]), "EMBEDDING_BIAS_WEIGHTS": np.array([[np.nan]], np.float32)},
            r"embedding_bias_weights is \[nan\]; expected finite numbers",
        ),
        ("a", {"END_ID": np.array([[-2]], np.int32)}, "end_id is -2; expected an integer of at least -1"),
        ("a", {"PAD_ID": np.array([[1], [1]], np.int32)}, "pad_id is for 2 prompts; expected 1, as many as text_input"),
    ],
)
def test_bad_input_is_refused_by_the_clients_name_of_it(prompt: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestRejected, match=message):
        run(prompt, **more)


def test_an_empty_second_prompt_is_none() -> None:
    assert run("a", DECODER_QUERY=texts([""]))["INPUT_ID"] == [[97]]


def test_bad_input_in_a_batch_names_the_prompt() -> None:
    with pytest.raises(RequestRejected, match=r"text_input is empty; .* \(prompt 2 of 3 in the batch\)"):
        run("a", "", "b")


def test_missing_inputs_are_named() -> None:
    step = Preprocessing(version(), adds_special_tokens=True)
    for missing, named in (("QUERY", "text_input"), ("REQUEST_OUTPUT_LEN", "max_tokens")):
        asked = {name: array for name, array in ask("a").items() if name != missing}
        with pytest.raises(RequestRejected, match=f"{named} is missing"):
            step.run(asked)


def test_special_tokens_are_added_unless_the_parameter_says_otherwise(tokenizers: Mapping[str, Tokenizer]) -> None:
    for kind, tokenizer in tokenizers.items():
        served = replace(version(vocab_size=10**6), tokenizer=tokenizer)
        full, bare = (
            Preprocessing(served, adds_special_tokens=adds).run(ask("the capital"))["INPUT_ID"][0].tolist()
            for adds in (True, False)
        )
        assert full == tokenizer.encode_text("the capital")
        assert full[len(full) - len(bare) :] == bare
        shows = [bool(tokenizer.vocabulary[token].text) for token in bare]
        assert all(shows), kind
        added = full[: len(full) - len(bare)]
        assert not any(tokenizer.vocabulary[token].text for token in added)
        # ChatGLM without [gMASK] sop answers nonsense; Llama's tokenizers begin with <s>.
        assert len(added) == {BYTE_LEVEL: 0, SPACE_MARKED: 1, SENTENCEPIECE: 1}.get(kind, 2)


@pytest.mark.parametrize("kind", [BYTE_LEVEL, SPACE_MARKED, SENTENCEPIECE])
def test_a_prompt_that_brings_its_special_tokens_keeps_them(tokenizers: Mapping[str, Tokenizer], kind: str) -> None:
    tokenizer = tokenizers[kind]
    name = "<|im_start|>" if kind == BYTE_LEVEL else "<s>"
    assert tokenizer.encode_bare(f"{name}the capital").count(1) == 1
    assert 1 not in tokenizer.encode_bare("the capital")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["\n", "END", " END", "。", "The capital", "###"])
def test_every_spelling_of_a_word_reads_as_the_word(tokenizers: Mapping[str, Tokenizer], kind: str, word: str) -> None:
    tokenizer = tokenizers[kind]
    found = spellings(tokenizer, word)
    assert found
    for ids in found:
        stream = Detokenizer(tokenizer.vocabulary, drops_first_space=False)
        assert "".join([*map(stream.push, ids), stream.finish()]).strip(" ") == word.strip(" ")


@pytest.mark.parametrize("kind", [SENTENCEPIECE, SPACE_MARKED, "chatglm3", GLM4, BYTE_LEVEL])
def test_a_line_break_is_found_inside_of_a_text(tokenizers: Mapping[str, Tokenizer], kind: str) -> None:
    tokenizer = tokenizers[kind]
    answer = tokenizer.encode_word("the capital\nof France")
    found = spellings(tokenizer, "\n")
    assert any(answer[start : start + len(ids)] == ids for ids in found for start in range(len(answer)))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    st.lists(st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4), max_size=4), min_size=1, max_size=3)
)
def test_word_lists_read_back_as_the_words(batch: list[list[list[int]]]) -> None:
    lists = word_lists(batch)

    assert (lists.shape[:2], lists.dtype) == ((len(batch), 2), np.int32)
    for words, (ids, ends) in zip(batch, lists.tolist(), strict=True):
        found = [end for end in ends if end >= 0]
        assert ends == found + [-1] * (len(ends) - len(found))
        assert [ids[start:end] for start, end in itertools.pairwise([0, *found])] == words


def test_word_lists_of_nothing_have_no_width() -> None:
    assert word_lists([[], []]).shape == (2, 2, 0)


def test_tokenizers_are_never_loaded_with_code_of_the_checkpoint() -> None:
    folder = Path(__file__).parents[3] / "tritonforge" / "runtime" / "ensemble"
    sources = "".join(path.read_text() for path in folder.rglob("*.py"))
    assert "transformers" not in sources
    assert "trust_remote_code" not in sources


def test_fields_that_triton_takes_for_parameters_are_refused() -> None:
    unserved = UnservedInputs(["messages", "lora_task_id", "exclude_input_in_output", "return_perf_metrics"])
    unserved.check({"sequence_id": 1, "messages": "", "exclude_input_in_output": True, "return_perf_metrics": False})
    with pytest.raises(RequestRejected, match="lora_task_id is given; this ensemble has no such input, expected none"):
        unserved.check({"lora_task_id": 3, "messages": "[]"})
