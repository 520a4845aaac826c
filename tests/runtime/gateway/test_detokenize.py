"""Incremental detokenisation: any chunks give what the tokenizer's own library gives for the whole."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import sentencepiece
import tokenizers as tokenizers_library
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.gateway.properties import SAME_EXAMPLES
from tests.runtime.gateway.tokenizer_folders import BYTE_LEVEL, GLM4, KINDS, SENTENCEPIECE, SPACE_MARKED
from tests.support import tokenizer_files
from tritonforge.runtime.gateway.detokenize import Detokenizer
from tritonforge.runtime.gateway.tokenization.base import Tokenizer
from tritonforge.runtime.gateway.tokenization.vocabulary import Piece, PieceKind, Vocabulary

TEXT = st.text(
    st.sampled_from(list("ab the  is\n\tParis你好ß👋🙂�"))
    | st.characters(exclude_categories=["Cs"], exclude_characters="▁"),
    max_size=30,
)


def text_of(tokenizer: Tokenizer, ids: list[int], *, chat: bool) -> str:
    first_space = chat and tokenizer.reply_style.drops_first_space
    detokenizer = Detokenizer(tokenizer.vocabulary, drops_first_space=first_space)
    return "".join(detokenizer.push(token_id) for token_id in ids) + detokenizer.finish()


@pytest.mark.parametrize("kind", KINDS)
@SAME_EXAMPLES
@given(text=TEXT)
def test_a_reply_gives_the_text_that_was_encoded(tokenizers: Mapping[str, Tokenizer], kind: str, text: str) -> None:
    tokenizer = tokenizers[kind]
    assert text_of(tokenizer, tokenizer.encode_word(text), chat=True) == text


@pytest.mark.parametrize("kind", [SENTENCEPIECE, "chatglm2", "chatglm3", SPACE_MARKED])
def test_a_continuation_keeps_the_space_before_its_first_word(tokenizers: Mapping[str, Tokenizer], kind: str) -> None:
    tokenizer = tokenizers[kind]
    ids = tokenizer.encode_word("the capital")
    assert text_of(tokenizer, ids, chat=False) == " the capital"
    assert text_of(tokenizer, ids, chat=True) == "the capital"


@pytest.mark.parametrize("kind", [BYTE_LEVEL, GLM4])
def test_a_byte_level_reply_keeps_its_leading_space(tokenizers: Mapping[str, Tokenizer], kind: str) -> None:
    tokenizer = tokenizers[kind]
    assert text_of(tokenizer, tokenizer.encode_word(" the"), chat=True) == " the"


@SAME_EXAMPLES
@given(st.lists(st.integers(0, 420), max_size=12))
def test_any_llama_ids_give_what_sentencepiece_gives(tokenizers: Mapping[str, Tokenizer], ids: list[int]) -> None:
    model = sentencepiece.SentencePieceProcessor(model_proto=tokenizer_files.sentencepiece_bpe())
    ids = [token_id for token_id in ids if token_id < model.get_piece_size()]
    # Of an invalid run of bytes sentencepiece makes one U+FFFD per byte, Python one per broken character.
    assert _squeezed(text_of(tokenizers[SENTENCEPIECE], ids, chat=True)) == _squeezed(model.decode(ids))


@SAME_EXAMPLES
@given(st.lists(st.integers(0, 378), max_size=12))
def test_any_byte_level_ids_give_what_the_library_gives(tokenizers: Mapping[str, Tokenizer], ids: list[int]) -> None:
    ids = [token_id for token_id in ids if token_id > 2]  # the library joins bytes across a special token, we do not
    library = tokenizers_library.Tokenizer.from_str(tokenizer_files.byte_level_bpe(tokenizer_files.CHATML_SPECIALS))
    assert text_of(tokenizers[BYTE_LEVEL], ids, chat=False) == library.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
@SAME_EXAMPLES
@given(ids=st.lists(st.integers(-5, 700), max_size=20))
def test_no_id_raises_and_no_character_is_split(tokenizers: Mapping[str, Tokenizer], kind: str, ids: list[int]) -> None:
    text_of(tokenizers[kind], ids, chat=False).encode()


def test_ascii_in_front_of_half_a_character_is_shown_at_once() -> None:
    vocabulary = Vocabulary([Piece(PieceKind.TEXT, b" \xe4\xbd"), Piece(PieceKind.BYTE, b"\xa0")])
    detokenizer = Detokenizer(vocabulary, drops_first_space=False)
    assert [detokenizer.push(0), detokenizer.push(1), detokenizer.finish()] == [" ", "你", ""]


def test_a_character_that_is_cut_off_is_flushed_as_a_replacement() -> None:
    detokenizer = Detokenizer(Vocabulary([Piece(PieceKind.BYTE, b"\xe4")]), drops_first_space=False)
    assert [detokenizer.push(0), detokenizer.finish()] == ["", "\ufffd"]


def test_a_special_token_ends_a_character_and_shows_nothing() -> None:
    detokenizer = Detokenizer(Vocabulary([Piece(PieceKind.BYTE, b"\xe4")]), drops_first_space=False)
    assert [detokenizer.push(0), detokenizer.push(99), detokenizer.push(0)] == ["", "\ufffd", ""]


def test_only_one_leading_space_is_dropped() -> None:
    vocabulary = Vocabulary([Piece(PieceKind.TEXT, b" "), Piece(PieceKind.TEXT, b" a")])
    detokenizer = Detokenizer(vocabulary, drops_first_space=True)
    assert [detokenizer.push(0), detokenizer.push(0), detokenizer.push(1)] == ["", " ", " a"]


def _squeezed(text: str) -> str:
    while "\ufffd\ufffd" in text:
        text = text.replace("\ufffd\ufffd", "\ufffd")
    return text
