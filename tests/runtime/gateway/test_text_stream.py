"""How an answer ends, and what it consists of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.gateway.properties import SAME_EXAMPLES
from tests.runtime.gateway.versions import END, Letters
from tritonforge.runtime.gateway.detokenize import Detokenizer
from tritonforge.runtime.gateway.text_stream import TextStream


def stream(
    *,
    stop_words: tuple[str, ...] = (),
    max_tokens: int = 100,
    trims: bool = False,
    placeholder: tuple[str, str] | None = None,
) -> TextStream:
    return TextStream(
        Detokenizer(Letters().vocabulary, drops_first_space=False),
        end_ids=frozenset({END}),
        stop_words=stop_words,
        max_tokens=max_tokens,
        trims_edges=trims,
        placeholder=placeholder,
    )


def run(text: TextStream, ids: list[int]) -> tuple[str, str | None, int]:
    shown = text.push(ids).text + text.finish()
    return shown, text.finish_reason, text.completion_tokens


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (b"abc", ("abc", "length", 3)),
        (b"ab\0", ("ab", "stop", 2)),
        (b"ab", ("ab", "stop", 2)),
        (b"abc\0", ("abc", "stop", 3)),
        (b"abcd", ("abc", "length", 3)),
        (b"\0abc", ("", "stop", 0)),
        (b"", ("", "stop", 0)),
    ],
)
def test_the_reason_is_known_whether_or_not_the_engine_shows_the_end_token(ids: bytes, expected: tuple[object]) -> None:
    assert run(stream(max_tokens=3), list(ids)) == expected


def test_a_stop_word_ends_the_answer_and_its_tokens_after_it_do_not_count() -> None:
    text = stream(stop_words=("END",))
    assert run(text, list(b"abENDcd")) == ("ab", "stop", 5)
    assert text.was_cut


def test_the_beginning_of_a_stop_word_is_shown_when_the_answer_ends_there() -> None:
    assert run(stream(stop_words=("END",)), list(b"abEN\0")) == ("abEN", "stop", 4)


def test_a_reason_from_outside_counts_only_while_the_answer_goes_on() -> None:
    going, ended = stream(), stream()
    going.push([97])
    ended.push([97, END])
    going.finish("cancelled")
    ended.finish("cancelled")
    assert (going.finish_reason, ended.finish_reason) == ("cancelled", "stop")


def test_white_space_at_the_edges_is_left_out_on_request() -> None:
    assert run(stream(trims=True), list(b"\n a b \n\0"))[0] == "a b"


@SAME_EXAMPLES
@given(st.lists(st.sampled_from(list(b"abE N\0")), max_size=20), st.lists(st.integers(0, 20)), st.booleans())
def test_any_chunks_give_the_same_answer(ids: list[int], cuts: list[int], trims: bool) -> None:
    whole = stream(stop_words=("aE", "N N"), max_tokens=9, trims=trims)
    parts = stream(stop_words=("aE", "N N"), max_tokens=9, trims=trims)
    edges = [0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]
    shown = "".join(parts.push(ids[a:b]).text for a, b in zip(edges, edges[1:], strict=False)) + parts.finish()
    assert (shown, parts.finish_reason, parts.completion_tokens) == run(whole, ids)


def test_a_placeholder_is_filled_in_before_stop_words_are_looked_for() -> None:
    year = ("[[y]]", "2023")
    stopped, ended = stream(stop_words=("3!",), placeholder=year), stream(placeholder=year)
    assert run(stopped, list(b"in [[y]], [[y]]! [[")) == ("in 2023, 202", "stop", 16)
    assert run(ended, list(b"[[y]] [[y")) == ("2023 [[y", "stop", 9)
