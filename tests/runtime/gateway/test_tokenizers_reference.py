"""Prompts and replies against transformers, on small tokenizers that it reads without checkpoint code.

Not on a bare sentencepiece model, which it reads only with a protobuf newer than ours; the tests of tokenizers and of
detokenisation compare that one with the sentencepiece library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.gateway import tokenizer_folders
from tests.runtime.gateway.tokenizer_folders import BYTE_LEVEL, SPACE_MARKED
from tests.support import tokenizer_files
from tritonforge.runtime.gateway.detokenize import Detokenizer
from tritonforge.runtime.gateway.tokenization.base import Tokenizer
from tritonforge.runtime.gateway.tokenization.load import load_tokenizer

pytestmark = pytest.mark.reference

GLM = "glm_hf"
TEXTS = (
    "The capital of France is Paris.", " leading space", "two  spaces", "line\nbreak\n\n", "\ttab", "你好，世界",
    "👋🙂", "x = 3.14159", "naïve café", "a", " ", "\n", "<|im_end|> typed", "</s> typed",
)  # fmt: skip
CHATS = (
    [{"role": "user", "content": "Hello"}],
    [
        {"role": "system", "content": "Be brief.\n"},
        {"role": "user", "content": " What is 你好? "},
        {"role": "assistant", "content": "hello\n"},
        {"role": "user", "content": "\nThanks 👋"},
    ],
)


@pytest.fixture(params=[BYTE_LEVEL, SPACE_MARKED, GLM])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Tokenizer, Any]:
    from transformers import AutoTokenizer

    if request.param == GLM:
        tokenizer_files.write_glm(tmp_path)
        ours = load_tokenizer("huggingface", tmp_path)
    else:
        ours = tokenizer_folders.load(request.param, tmp_path)
    return ours, AutoTokenizer.from_pretrained(tmp_path)


def test_completion_prompts_have_the_same_ids(pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = pair
    assert [ours.encode_text(text) for text in TEXTS] == [theirs(text)["input_ids"] for text in TEXTS]


def test_chats_have_the_same_ids(pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = pair
    for messages in CHATS:
        expected = theirs.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        assert ours.encode_chat(messages) == expected


def test_a_continuation_is_what_the_full_text_has_after_the_prompt(pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = pair
    prompt = ours.encode_text("The capital of")
    for text in ("France is Paris.", "你好 👋", "\n\nnew"):
        more = ours.encode_word(text)
        detokenizer = Detokenizer(ours.vocabulary, drops_first_space=False)
        shown = "".join(detokenizer.push(token_id) for token_id in more) + detokenizer.finish()
        whole = theirs.decode([*prompt, *more], skip_special_tokens=True)
        assert theirs.decode(prompt, skip_special_tokens=True) + shown == whole


def test_a_reply_is_what_decoding_it_alone_gives(pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = pair
    for text in TEXTS:
        ids = [*ours.encode_word(text), 2]
        detokenizer = Detokenizer(ours.vocabulary, drops_first_space=ours.reply_style.drops_first_space)
        shown = "".join(detokenizer.push(token_id) for token_id in ids) + detokenizer.finish()
        assert shown == theirs.decode(ids, skip_special_tokens=True)
