"""Stop words: the cut does not depend on how the text is cut into chunks."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.runtime.gateway.properties import SAME_EXAMPLES
from tritonforge.runtime.gateway.stop_words import StopWords

# Few letters, so that words overlap and repeat.
TEXT = st.text("ab\n", max_size=20)
WORDS = st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=4)


def shown(words: list[str], chunks: list[str]) -> tuple[str, bool]:
    stop = StopWords(words)
    text = "".join(stop.push(chunk) for chunk in chunks)
    return text + stop.finish(), stop.found


def chunks_of(text: str, cuts: list[int]) -> list[str]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in zip(edges, edges[1:], strict=False)]


@SAME_EXAMPLES
@given(TEXT, WORDS, st.lists(st.integers(0, 30)))
@example("abab", ["bab", "ab"], [1])
def test_any_chunks_give_the_same_text(text: str, words: list[str], cuts: list[int]) -> None:
    assert shown(words, chunks_of(text, cuts)) == shown(words, list(text))


@SAME_EXAMPLES
@given(TEXT, WORDS)
def test_the_text_is_cut_at_the_word_that_ends_first(text: str, words: list[str]) -> None:
    found = [(text.find(word) + len(word), text.find(word)) for word in words if word in text]
    expected = (text[: min(found)[1]], True) if found else (text, False)
    assert shown(words, [text]) == expected


@SAME_EXAMPLES
@given(TEXT, WORDS)
def test_what_is_shown_before_the_end_is_never_taken_back(text: str, words: list[str]) -> None:
    stop = StopWords(words)
    early = "".join(stop.push(char) for char in text)
    assert (early + stop.finish()).startswith(early)
    assert not any(word in early for word in words)


def test_only_the_possible_beginning_of_a_word_is_held_back() -> None:
    stop = StopWords(["###"])
    assert stop.push("abc#") == "abc"
    assert stop.push("#d") == "##d"
