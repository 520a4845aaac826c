from hypothesis import given
from hypothesis import strategies as st

from tritonforge.client.sse import ServerSentEvent, SseParser

# Data without line ends: those separate data lines, and are tested on their own.
LINES = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
EVENTS = st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=5)
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def parse(*pieces: bytes) -> list[ServerSentEvent]:
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)]


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(whole) + 1) for place in places), len(whole)]
    return [whole[start:end] for start, end in zip(bounds, bounds[1:], strict=False)]


@given(EVENTS, LINE_ENDS, st.lists(st.integers(0, 10_000), max_size=20))
def test_any_cut_gives_the_same_events(events: list[list[str]], line_end: str, places: list[int]):
    lines = [line for event in events for line in [*(f"data: {data}" for data in event), ""]]
    whole = "".join(line + line_end for line in lines).encode()
    assert parse(*cut(whole, places)) == [ServerSentEvent("\n".join(event)) for event in events]


@given(st.binary(max_size=200), st.lists(st.integers(0, 10_000), max_size=20))
def test_any_bytes_are_read_the_same_however_they_are_cut(whole: bytes, places: list[int]):
    assert parse(*cut(whole, places)) == parse(whole)


def test_an_event_is_given_as_soon_as_its_empty_line_has_come():
    parser = SseParser()
    assert parser.feed(b"data: a\r\n") == []
    assert parser.feed(b"\r") == [ServerSentEvent("a")]
    assert parser.feed(b"\ndata: b\n\n") == [ServerSentEvent("b")]


def test_comments_ids_and_retry_times_are_passed_over():
    assert parse(b": keep-alive\n\nid: 7\nretry: 100\ndata: a\n\n") == [ServerSentEvent("a")]


def test_the_event_type_is_kept_for_one_event():
    assert parse(b"event: error\ndata: a\n\ndata: b\n\n") == [ServerSentEvent("a", "error"), ServerSentEvent("b")]


def test_one_space_after_the_colon_belongs_to_the_syntax():
    assert parse(b"data:a\n\ndata:  a\n\ndata\n\n") == [
        ServerSentEvent("a"),
        ServerSentEvent(" a"),
        ServerSentEvent(""),
    ]


def test_a_byte_order_mark_at_the_start_is_dropped():
    assert parse(b"\xef\xbb", b"\xbfdata: a\n\n") == [ServerSentEvent("a")]


def test_an_event_that_never_ends_is_not_given():
    assert parse(b"data: a\ndata: b\n") == []
