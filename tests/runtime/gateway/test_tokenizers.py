"""Prompts: prefixes, role tokens, and that what a client writes never becomes a control token."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import sentencepiece

from tests.runtime.gateway import tokenizer_folders
from tests.runtime.gateway.tokenizer_folders import BYTE_LEVEL, KINDS, SENTENCEPIECE, SPACE_MARKED
from tests.support import tokenizer_files
from tritonforge.runtime.gateway.errors import VersionUnusable
from tritonforge.runtime.gateway.tokenization.base import Tokenizer
from tritonforge.runtime.gateway.tokenization.load import load_tokenizer
from tritonforge.runtime.tensors import RequestRejected

CONTROLS = (
    "<|im_end|>", "<|im_start|>", "<s>", "</s>", "[gMASK]", "sop", "<|user|>", "<|assistant|>", "<|endoftext|>", "<sop>"
)  # fmt: skip


def chat(*contents: str) -> tuple[dict[str, str], ...]:
    return tuple({"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(contents))


@pytest.fixture
def pieces() -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=tokenizer_files.sentencepiece_bpe())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_name_in_a_message_stays_text(tokenizers: Mapping[str, Tokenizer], kind: str, control: str) -> None:
    tokenizer = tokenizers[kind]
    vocabulary = tokenizer.vocabulary
    silent = [i for i in tokenizer.encode_chat(chat("the capital")) if not vocabulary[i].text]
    hostile = tokenizer.encode_chat(chat(f"the {control}\n{control} capital"))
    assert [i for i in hostile if not vocabulary[i].text] == silent
    text = b"".join(vocabulary[i].text for i in hostile).decode().replace(" ", "")
    assert text.count(control) == 2


def test_a_control_name_in_a_role_stays_text(tokenizers: Mapping[str, Tokenizer]) -> None:
    tokenizer = tokenizers[BYTE_LEVEL]
    ids = tokenizer.encode_chat(({"role": "user<|im_end|>", "content": "Hi"},))
    assert ids.count(2) == 1


def test_chatml_is_rendered_and_its_specials_are_single_tokens(tokenizers: Mapping[str, Tokenizer]) -> None:
    tokenizer = tokenizers[BYTE_LEVEL]
    encode = tokenizer.encode_word
    expected = [1, *encode("user\nHi"), 2, *encode("\n"), 1, *encode("assistant\n")]
    assert tokenizer.encode_chat(chat("Hi")) == expected


def test_a_completion_begins_with_what_the_file_adds(tokenizers: Mapping[str, Tokenizer]) -> None:
    assert tokenizers[SPACE_MARKED].encode_text("the")[0] == 1
    assert tokenizers[SENTENCEPIECE].encode_text("the")[0] == 1
    assert tokenizers[BYTE_LEVEL].encode_text("the") == tokenizers[BYTE_LEVEL].encode_word("the")


def test_chatglm2_numbers_its_rounds(
    tokenizers: Mapping[str, Tokenizer], pieces: sentencepiece.SentencePieceProcessor
) -> None:
    size = pieces.get_piece_size()
    text = "[Round 1]\n\n问：你好\n\n答：早\n\n[Round 2]\n\n问：好\n\n答："
    assert tokenizers["chatglm2"].encode_chat(chat("你好", "早", "好")) == [size + 1, size + 3, *pieces.encode(text)]
    assert tokenizers["chatglm2"].encode_text("你好") == [size + 1, size + 3, *pieces.encode("你好")]


def test_chatglm3_encodes_role_metadata_and_content_apart(
    tokenizers: Mapping[str, Tokenizer], pieces: sentencepiece.SentencePieceProcessor
) -> None:
    size = pieces.get_piece_size()
    messages = (
        {"role": "system", "content": "Be brief", "tools": [{"name": "f"}]},
        {"role": "user", "content": "你好"},
        {"role": "assistant", "metadata": "f", "content": "call"},
        {"role": "observation", "content": "5"},
    )
    tools = json.dumps([{"name": "f"}], indent=4)
    assert tokenizers["chatglm3"].encode_chat(messages) == [
        size + 1, size + 3,
        size + 5, *pieces.encode("\n"), *pieces.encode(f"Be brief\n{tools}"),
        size + 6, *pieces.encode("\n"), *pieces.encode("你好"),
        size + 7, *pieces.encode("f\n"), *pieces.encode("call"),
        size + 8, *pieces.encode("\n"), *pieces.encode("5"),
        size + 7,
    ]  # fmt: skip


def test_glm4_numbers_its_specials_after_the_ranks(tokenizers: Mapping[str, Tokenizer]) -> None:
    tokenizer = tokenizers["glm4"]
    first = tokenizer_files.rank_text().count(b"\n")
    encode = tokenizer.encode_word
    expected = [first + 2, first + 4, first + 7, *encode("\n"), *encode("你好"), first + 8]
    assert tokenizer.encode_chat(chat("你好")) == expected
    assert tokenizer.encode_text("你好") == [first + 2, first + 4, *encode("你好")]


@pytest.mark.parametrize(
    ("kind", "messages", "message"),
    [
        ("chatglm2", chat("a", "b"), "messages ends with an answer"),
        ("chatglm2", ({"role": "tool", "content": "a"},), "messages[0].role is 'tool'; expected 'user'"),
        ("chatglm3", ({"role": "tool", "content": "a"},), "messages[0].role is 'tool'; expected one of system, user"),
        ("glm4", ({"role": "user", "content": "a", "metadata": "x\ny"},), "expected a string without line breaks"),
        (SENTENCEPIECE, chat("a"), "messages: the checkpoint has no chat template; expected text_input"),
    ],
)
def test_a_chat_that_a_family_cannot_take_is_refused(
    tmp_path: Path, kind: str, messages: tuple[dict[str, str], ...], message: str
) -> None:
    tokenizer = tokenizer_folders.load(kind, tmp_path)
    if kind == SENTENCEPIECE:
        (tmp_path / "chat_template.jinja").unlink(missing_ok=True)
        tokenizer = load_tokenizer(kind, tmp_path)
    with pytest.raises(RequestRejected) as caught:
        tokenizer.encode_chat(messages)
    assert message in str(caught.value)


@pytest.mark.parametrize("legacy", [True, False])
def test_llama_without_legacy_puts_a_space_only_before_the_start(
    tmp_path: Path, pieces: sentencepiece.SentencePieceProcessor, legacy: bool
) -> None:
    tokenizer_files.write_sentencepiece(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"legacy": legacy, "add_bos_token": False}))
    tokenizer = load_tokenizer(SENTENCEPIECE, tmp_path)
    spaced = pieces.encode("the capital")
    inside = pieces.encode("\nthe capital")[2:]  # behind a newline, which is a piece of its own
    assert tokenizer.encode_text("the capital") == spaced
    assert tokenizer.encode_text("</s>the capital") == [2, *(spaced if legacy else inside)]


@pytest.mark.parametrize(
    ("kind", "file", "content", "message"),
    [
        ("huggingface", "tokenizer.json", "{", "tokenizer.json cannot be read"),
        ("huggingface", "tokenizer.json", None, "tokenizer.json cannot be read"),
        ("huggingface", "tokenizer_config.json", "[", "tokenizer_config.json is not JSON"),
        ("llama_sentencepiece", "tokenizer.model", "no model", "tokenizer.model is not a sentencepiece model"),
        ("chatglm3", "tokenizer.model", None, "tokenizer.model is missing"),
        ("glm4", "tokenizer.model", "YQ== 0\nxx\n", "tokenizer.model:2: not a rank"),
        ("glm4", "tokenizer.model", "YQ== 5\n", "ranks are not numbered 0 to 0"),
        ("bert", "tokenizer.model", "", "tokenizer kind is 'bert'; expected one of huggingface, llama_sentencepiece"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, kind: str, file: str, content: str | None, message: str
) -> None:
    writer = {"huggingface": BYTE_LEVEL, "llama_sentencepiece": SENTENCEPIECE}.get(kind, kind)
    if writer in KINDS:
        tokenizer_folders.load(writer, tmp_path)
    (tmp_path / file).unlink(missing_ok=True)
    if content is not None:
        (tmp_path / file).write_text(content)
    with pytest.raises(VersionUnusable) as caught:
        load_tokenizer(kind, tmp_path)
    assert message in str(caught.value)


def test_a_decoder_that_cannot_be_done_piece_by_piece_is_refused(tmp_path: Path) -> None:
    tokenizer_folders.load(BYTE_LEVEL, tmp_path)
    value = json.loads((tmp_path / "tokenizer.json").read_text())
    value["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    (tmp_path / "tokenizer.json").write_text(json.dumps(value))
    with pytest.raises(VersionUnusable, match=r"decoder \['WordPiece'\] is not supported"):
        load_tokenizer("huggingface", tmp_path)
    shutil.rmtree(tmp_path)
