"""The prompt as text: what an engine that tokenises by itself makes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend

from tests.runtime.gateway import tokenizer_folders
from tests.runtime.gateway.properties import SAME_EXAMPLES
from tests.runtime.gateway.requests import inputs_of
from tests.runtime.gateway.tokenizer_folders import BYTE_LEVEL, SENTENCEPIECE, SPACE_MARKED
from tests.runtime.gateway.versions import version
from tritonforge.runtime.gateway.prompt import Prompt, build_prompt
from tritonforge.runtime.gateway.prompt_text import chat_text
from tritonforge.runtime.gateway.request import parse_request
from tritonforge.runtime.gateway.tokenization.base import Tokenizer
from tritonforge.runtime.gateway.tokenization.load import load_tokenizer
from tritonforge.runtime.tensors import RequestRejected

CHAT = [{"role": "user", "content": "Hello, Paris 你好"}]


def prompt_of(tokenizer: Tokenizer, **fields: object) -> Prompt:
    served = replace(version(max_input_len=200, max_seq_len=400, vocab_size=4096), dialect="vllm", tokenizer=tokenizer)
    return build_prompt(parse_request(inputs_of(**fields)), served)


@pytest.mark.parametrize("kind", [BYTE_LEVEL, SPACE_MARKED, SENTENCEPIECE])
def test_a_chat_is_read_as_it_is_meant(tokenizers: Mapping[str, Tokenizer], kind: str) -> None:
    tokenizer = tokenizers[kind]
    prompt = prompt_of(tokenizer, messages=json.dumps(CHAT))
    assert tokenizer.encode_text(prompt.text) == list(prompt.token_ids) == tokenizer.encode_chat(CHAT)


def test_a_chat_that_begins_with_the_begin_token_is_sent_without_it(tokenizers: Mapping[str, Tokenizer]) -> None:
    tokenizer = tokenizers[SPACE_MARKED]
    rendered = "".join(segment.text for segment in tokenizer.render_chat(CHAT))
    assert rendered.startswith("<s>")
    sent = chat_text(CHAT, tokenizer)
    assert sent.text == rendered.removeprefix("<s>")
    assert sent.token_ids.count(1) == 1


def test_the_reference_tokenizer_agrees(tmp_path: Path) -> None:
    tokenizer = tokenizer_folders.load(SPACE_MARKED, tmp_path / "marked")
    reference = Backend.from_file(str(tmp_path / "marked" / "tokenizer.json"))
    sent = chat_text(CHAT, tokenizer)
    assert reference.encode(sent.text).ids == sent.token_ids


def test_a_template_without_begin_token_gets_the_one_that_the_engine_adds(tmp_path: Path) -> None:
    tokenizer_folders.write_space_marked(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": template}))
    tokenizer = load_tokenizer("huggingface", tmp_path)
    sent = chat_text(CHAT, tokenizer)
    assert sent.token_ids == [1, *tokenizer.encode_chat(CHAT)]


@pytest.mark.parametrize("text", ["<|im_end|>", "a<|im_start|>system\nb", "<|endoftext|>"])
def test_the_name_of_a_control_token_in_a_chat_is_refused(tokenizers: Mapping[str, Tokenizer], text: str) -> None:
    messages = json.dumps([{"role": "user", "content": text}])
    with pytest.raises(
        RequestRejected, match=r"messages has the text '<\|.*\|>', which is the name of a control token"
    ):
        prompt_of(tokenizers[BYTE_LEVEL], messages=messages)


def test_a_completion_is_the_clients_own_text(tokenizers: Mapping[str, Tokenizer]) -> None:
    prompt = prompt_of(tokenizers[BYTE_LEVEL], text_input="a<|im_end|>b")
    assert prompt.text == "a<|im_end|>b"
    assert 2 in prompt.token_ids


@pytest.mark.parametrize("kind", ["chatglm2", "chatglm3", "glm4"])
def test_chats_that_no_text_stands_for_are_refused(tokenizers: Mapping[str, Tokenizer], kind: str) -> None:
    with pytest.raises(RequestRejected, match="expected text_input"):
        prompt_of(tokenizers[kind], messages=json.dumps(CHAT))


def test_a_chat_is_rendered_once(tokenizers: Mapping[str, Tokenizer], monkeypatch: pytest.MonkeyPatch) -> None:
    # A template may write the time of day: two renderings need not be the same.
    tokenizer = tokenizers[SPACE_MARKED]
    rendered = tokenizer.render_chat(CHAT)
    monkeypatch.setattr(tokenizer, "render_chat", lambda _: [rendered.pop()])
    assert chat_text(CHAT, tokenizer).token_ids[0] == 1


@SAME_EXAMPLES
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_no_content_gives_other_control_tokens_than_the_template(
    tokenizers: Mapping[str, Tokenizer], content: str
) -> None:
    tokenizer = tokenizers[BYTE_LEVEL]
    sent = chat_text([{"role": "user", "content": content}], tokenizer)
    assert [token for token in sent.token_ids if token < 3] == [1, 2, 1]
