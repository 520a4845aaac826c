"""Hiding control texts from a template, and getting them back as literal text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.gateway.properties import SAME_EXAMPLES
from tritonforge.runtime.gateway.tokenization.control_text import ControlTexts, Segment

CONTROLS = ("<s>", "<s>x", "</s>")
TEXT = st.lists(st.sampled_from(["<s>", "</s>", "x", "<", "s>", " ", "a"]), max_size=8).map("".join)


def test_a_chat_without_control_texts_is_one_segment() -> None:
    chat = ControlTexts(CONTROLS).hide([{"role": "user", "content": "Hi"}])
    assert chat.split("<s>user Hi</s>") == [Segment("<s>user Hi</s>", literal=False)]


def test_names_inside_of_tool_calls_are_hidden_too() -> None:
    chat = ControlTexts(CONTROLS).hide([{"role": "a", "tool_calls": [{"function": {"</s>": "<s>x"}}]}])
    assert "s>" not in str(chat.messages)


@SAME_EXAMPLES
@given(st.lists(TEXT, max_size=4))
def test_hidden_texts_come_back_whole_and_literal(contents: list[str]) -> None:
    messages = [{"role": "user", "content": content} for content in contents]
    chat = ControlTexts(CONTROLS).hide(messages)
    segments = chat.split("".join(f"<s>{message['content']}" for message in chat.messages))
    assert "".join(segment.text for segment in segments) == "".join(f"<s>{content}" for content in contents)
    template_made = "".join(segment.text for segment in segments if not segment.literal)
    assert template_made.count("<s>") == len(contents)
    assert "</s>" not in template_made


def test_a_tokenizer_without_control_texts_hides_nothing() -> None:
    messages = [{"role": "user", "content": "<s>"}]
    assert ControlTexts(()).hide(messages).messages == messages
