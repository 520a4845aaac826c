"""Last step of the ensemble: token ids of one response to text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tests.runtime.gateway import tokenizer_folders
from tests.runtime.gateway.tokenizer_folders import BYTE_LEVEL, KINDS, SENTENCEPIECE
from tests.runtime.gateway.versions import Letters
from tritonforge.runtime.ensemble.postprocessing import Postprocessing
from tritonforge.runtime.gateway.tokenization.base import Tokenizer
from tritonforge.runtime.tensors import RequestRejected


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Tokenizer]:
    folder = tmp_path_factory.mktemp("tokenizers")
    return {kind: tokenizer_folders.load(kind, folder / kind) for kind in KINDS}


def answer(ids: list[list[list[int]]], lengths: list[list[int]]) -> dict[str, np.ndarray]:
    return {"TOKENS_BATCH": np.array(ids, np.int32), "SEQUENCE_LENGTH": np.array(lengths, np.int32)}


def shown(tokenizer: Tokenizer, ids: list[int]) -> str:
    made = Postprocessing(tokenizer.vocabulary, ["OUTPUT"]).run(answer([[ids]], [[len(ids)]]))
    return made["OUTPUT"][0].decode()


def test_text_is_flat_one_per_prompt_and_beam() -> None:
    step = Postprocessing(Letters().vocabulary, ["OUTPUT"])
    made = step.run(answer([[[97, 98, 99], [100, 0, 0]], [[101, 102, 0], [0, 0, 0]]], [[3, 1], [2, 0]]))
    assert made["OUTPUT"].shape == (4,)
    assert made["OUTPUT"].tolist() == [b"abc", b"d", b"ef", b""]


def test_special_tokens_do_not_show(tokenizers: Mapping[str, Tokenizer]) -> None:
    for kind, tokenizer in tokenizers.items():
        ids = tokenizer.encode_word("the capital")
        specials = [token for token in tokenizer.encode_text("x") if not tokenizer.vocabulary[token].text]
        assert shown(tokenizer, [*specials, *ids, *specials]).strip() == "the capital", kind


def test_a_space_at_the_start_of_a_response_stays(tokenizers: Mapping[str, Tokenizer]) -> None:
    for kind in (SENTENCEPIECE, BYTE_LEVEL):
        tokenizer = tokenizers[kind]
        ids = tokenizer.encode_word("The capital of France is Paris")
        whole = shown(tokenizer, ids)
        assert "".join(shown(tokenizer, [token]) for token in ids) == whole
        assert whole.strip() == "The capital of France is Paris"


def test_a_character_that_is_cut_is_shown_as_such(tokenizers: Mapping[str, Tokenizer]) -> None:
    tokenizer = tokenizers[BYTE_LEVEL]
    ids = tokenizer.encode_word("🚀")
    assert len(ids) > 1
    assert shown(tokenizer, ids) == "🚀"
    assert shown(tokenizer, ids[:1]) == "\ufffd"


def test_lengths_beyond_the_tokens_and_below_zero_are_harmless() -> None:
    step = Postprocessing(Letters().vocabulary, ["OUTPUT"])
    assert step.run(answer([[[97, 98]], [[99, 100]]], [[9], [-1]]))["OUTPUT"].tolist() == [b"ab", b""]


def test_releases_before_014_have_the_rest_carried_through() -> None:
    names = ["OUTPUT", "OUT_CUM_LOG_PROBS", "OUT_OUTPUT_LOG_PROBS", "OUT_CONTEXT_LOGITS", "OUT_BATCH_INDEX"]
    step = Postprocessing(Letters().vocabulary, names)
    given = np.array([[-1.5]], np.float32)
    made = step.run({**answer([[[97]]], [[1]]), "CUM_LOG_PROBS": given})
    assert made["OUT_CUM_LOG_PROBS"].tolist() == [[-1.5]]
    assert {name: (array.shape, array.dtype.name) for name, array in made.items() if name != "OUTPUT"} == {
        "OUT_CUM_LOG_PROBS": ((1, 1), "float32"),
        "OUT_OUTPUT_LOG_PROBS": ((1, 1, 1), "float32"),
        "OUT_CONTEXT_LOGITS": ((1, 1, 1), "float32"),
        "OUT_BATCH_INDEX": ((1, 1), "int32"),
    }


def test_tensors_that_do_not_fit_together_are_refused() -> None:
    step = Postprocessing(Letters().vocabulary, ["OUTPUT"])
    with pytest.raises(RequestRejected, match=r"have shapes \[1, 1, 1\] and \[1, 2\]; expected"):
        step.run(answer([[[97]]], [[1, 1]]))
    with pytest.raises(RequestRejected, match="shapes None and"):
        step.run({"SEQUENCE_LENGTH": np.ones((1, 1), np.int32)})
