"""The answer of an engine that sends text: what is shown of it, why it ended, and how many tokens it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.gateway.properties import SAME_EXAMPLES
from tritonforge.runtime.gateway.engine import Text
from tritonforge.runtime.gateway.passed_text import PassedText
from tritonforge.runtime.gateway.text_shape import TextShape


def passed(
    *, stop_words: tuple[str, ...] = (), trims: bool = False, drops: bool = False, max_tokens: int = 100
) -> PassedText:
    return PassedText(
        TextShape(stop_words=stop_words, trims_edges=trims),
        prompt_tokens=7,
        max_tokens=max_tokens,
        count_tokens=len,
        drops_first_space=drops,
    )


def run(text: PassedText, *events: Text, reason: str | None = None) -> str:
    return "".join(text.take(event).text for event in events) + text.finish(reason)


def test_the_engines_own_reason_and_counts_are_passed_on() -> None:
    text = passed()
    assert run(text, Text("a", tokens=2, prompt_tokens=9), Text("b", tokens=1, finish_reason="length")) == "ab"
    assert (text.finish_reason, text.completion_tokens, text.prompt_tokens, text.was_cut) == ("length", 3, 9, False)


def test_tokens_that_nobody_counts_are_counted_in_the_text() -> None:
    text = passed()
    assert run(text, Text("abc"), Text("d", finish_reason="stop")) == "abcd"
    assert (text.completion_tokens, text.prompt_tokens) == (4, 7)


def test_tokens_of_a_stop_word_are_none_of_the_answers_however_it_came() -> None:
    whole, pieces, deaf = (passed(stop_words=("END",)) for _ in range(3))
    assert run(whole, Text("ab", finish_reason="stop")) == "ab"
    assert run(pieces, Text("ab"), Text("EN"), Text("", finish_reason="stop", retracted=2)) == "ab"
    assert run(deaf, Text("abEN"), Text("D, and on")) == "ab"
    assert [text.completion_tokens for text in (whole, pieces, deaf)] == [2, 2, 2]


@pytest.mark.parametrize(("max_tokens", "reason"), [(3, "length"), (4, "stop")])
def test_an_engine_without_a_reason_ended_by_the_number_of_its_tokens(max_tokens: int, reason: str) -> None:
    text = passed(max_tokens=max_tokens)
    run(text, Text("abc"))
    assert (text.finish_reason, text.was_cut) == (reason, False)


def test_a_client_that_left_cut_the_answer() -> None:
    text = passed()
    run(text, Text("abc"), reason="cancelled")
    assert (text.finish_reason, text.was_cut) == ("cancelled", True)


def test_a_stop_word_cuts_and_the_engine_must_be_told() -> None:
    text = passed(stop_words=("END",))
    assert run(text, Text("abE"), Text("NDcd"), Text("more")) == "ab"
    assert (text.finish_reason, text.was_cut) == ("stop", True)


def test_an_engine_that_ended_at_the_stop_word_need_not_be_told() -> None:
    text = passed(stop_words=("END",))
    assert run(text, Text("abE"), Text("ND", finish_reason="stop")) == "ab"
    assert (text.finish_reason, text.was_cut) == ("stop", False)


def test_the_start_of_a_stop_word_is_shown_unless_the_engine_takes_it_back() -> None:
    assert run(passed(stop_words=("END",)), Text("abEN"), Text("", finish_reason="length")) == "abEN"
    assert run(passed(stop_words=("END",)), Text("abEN"), Text("", finish_reason="stop", retracted=2)) == "ab"


def test_a_reply_is_shown_without_the_space_before_its_first_word() -> None:
    assert run(passed(drops=True), Text(""), Text(" a"), Text(" b")) == "a b"
    assert run(passed(drops=True), Text("  a")) == " a"
    assert run(passed(trims=True), Text("\n a "), Text(" ")) == "a"


@SAME_EXAMPLES
@given(st.text("aEN D ", max_size=20), st.lists(st.integers(0, 20), max_size=5), st.booleans(), st.booleans())
def test_any_chunks_give_the_same_answer(whole: str, cuts: list[int], trims: bool, drops: bool) -> None:
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    chunks = [Text(whole[a:b]) for a, b in zip(edges, edges[1:], strict=False)]
    one, many = (passed(stop_words=("END", "N N"), trims=trims, drops=drops) for _ in range(2))
    assert run(one, Text(whole)) == run(many, *chunks)
    assert one.finish_reason == many.finish_reason
