"""Framing of messages between the model and its worker."""

from hypothesis import given
from hypothesis import strategies as st

from tritonforge.runtime.openvino.protocol import (
    Broken,
    Cancel,
    FrameReader,
    Generation,
    Message,
    Ready,
    Submit,
    Update,
    encode,
    merge,
)

keys = st.integers(0, 2**40)
ids = st.lists(st.integers(0, 200_000), max_size=20)
floats = st.floats(allow_nan=False, allow_infinity=False)
generations = st.builds(
    Generation,
    input_ids=ids,
    max_new_tokens=st.integers(1, 4096),
    stop_sequences=st.lists(ids, max_size=3),
    temperature=floats,
    top_k=st.none() | st.integers(1, 100),
    seed=st.integers(0, 2**64 - 1),
    log_probs=st.booleans(),
)
updates = st.builds(
    Update,
    key=keys,
    ids=ids,
    log_probs=st.lists(floats, max_size=3),
    cum_log_prob=floats,
    finish=st.none() | st.sampled_from(["stop", "length", "cancelled"]),
    error=st.none() | st.text(),
)
messages = st.lists(
    st.builds(Submit, key=keys, generation=generations)
    | st.builds(Cancel, key=keys)
    | st.builds(Ready, load_s=floats)
    | updates
    | st.builds(Broken, reason=st.text()),
    max_size=5,
)


@given(st.lists(messages, max_size=4), st.lists(st.integers(1, 50), min_size=1))
def test_messages_survive_however_the_bytes_arrive(frames: list[list[Message]], cuts: list[int]) -> None:
    data = b"".join(encode(frame) for frame in frames)
    reader = FrameReader()
    received: list[Message] = []
    start = turn = 0
    while start < len(data):
        size = cuts[turn % len(cuts)]
        received += reader.feed(data[start : start + size])
        start, turn = start + size, turn + 1
    sent = [message for frame in frames for message in frame]
    assert [type(message) for message in received] == [type(message) for message in sent]
    assert encode(received) == encode(sent)  # JSON has no tuples, so the values compare in their written form


@given(st.lists(st.builds(Update, key=st.integers(0, 3), ids=ids, finish=st.none())))
def test_merged_updates_keep_every_token_in_order(news: list[Update]) -> None:
    joined = merge(news)
    assert len({update.key for update in joined}) == len(joined)
    for update in joined:
        assert list(update.ids) == [token for part in news if part.key == update.key for token in part.ids]


def test_a_merged_update_ends_as_its_last_part_ends() -> None:
    parts = [
        Update(1, [5], [-0.5], -0.5),
        Update(2, [9]),
        Update(1, [6], [-0.25], -0.75, finish="stop"),
        Update(2, error="the engine failed"),
    ]
    first, second = merge(parts)
    assert first == Update(1, [5, 6], [-0.5, -0.25], -0.75, finish="stop")
    assert (second.ids, second.error, second.final) == ([9], "the engine failed", True)
