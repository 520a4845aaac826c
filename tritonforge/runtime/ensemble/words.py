"""Stop words and bad words as lists of token ids, in the form of the `tensorrtllm` backend. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..gateway.tokenization.base import Tokenizer
from ..tensors import Array

# Texts that a word can follow without growing together with it: one for words that begin with a letter, one for others.
_LEADS = ("\n", "a")


def spellings(tokenizer: Tokenizer, word: str) -> list[list[int]]:
    """The ways in which a word is made of tokens: at the start of a text, behind a space, and inside of a text.

    Where a model joins the word's end with what follows, or its start with what comes before, no list of ids finds it:
    that is what looking for words by ids, as the backend does, can not see.
    """
    forms = [tokenizer.encode_word(word), tokenizer.encode_word(f" {word}"), *_inside(tokenizer, word)]
    return [list(ids) for ids in dict.fromkeys(tuple(ids) for ids in forms if ids)]


def word_lists(batch: Sequence[Sequence[Sequence[int]]]) -> Array:
    """Words of each prompt, `[batch, 2, n]`: all ids in a row; below, where each word ends, padded with -1.

    Without any words n is 0, which the backend takes for an input that is not given.
    """
    ids = [[token_id for word in words for token_id in word] for words in batch]
    ends = [np.cumsum([len(word) for word in words], dtype=np.int32).tolist() for words in batch]
    width = max((len(row) for row in ids), default=0)
    rows = [[_padded(row, width, 0), _padded(row_ends, width, -1)] for row, row_ends in zip(ids, ends, strict=True)]
    return np.array(rows, dtype=np.int32).reshape(len(batch), 2, width)


def _inside(tokenizer: Tokenizer, word: str) -> list[list[int]]:
    """The word without what sentencepiece puts before the first word of a text."""
    found = []
    for lead in _LEADS:
        before, whole = tokenizer.encode_word(lead), tokenizer.encode_word(lead + word)
        if whole[: len(before)] == before:
            found.append(whole[len(before) :])
    return found


def _padded(row: Sequence[int], width: int, filler: int) -> list[int]:
    return [*row, *[filler] * (width - len(row))]
