"""The worker's loop over pipes, with an engine that is handed in."""

import os
from collections.abc import Iterator

import pytest

from tritonforge.runtime.openvino.engine import Exchange
from tritonforge.runtime.openvino.protocol import Cancel, FrameReader, Generation, Message, Submit, Update, encode
from tritonforge.runtime.openvino.worker import Channel, ParentGone, serve


class CountingEngine:
    """Answers each request with 1, 2, 3, …; the prompt [13] makes its step fail."""

    def __init__(self) -> None:
        self.running: dict[int, list[int]] = {}
        self.cancelled: list[int] = []

    @property
    def busy(self) -> bool:
        return bool(self.running)

    def submit(self, key: int, generation: Generation) -> None:
        if generation.input_ids == [13]:
            raise RuntimeError("poisoned")
        self.running[key] = list(range(1, generation.max_new_tokens + 1))

    def cancel(self, key: int) -> None:
        self.cancelled.append(key)
        self.running.pop(key, None)

    def step(self, exchange: Exchange) -> None:
        updates = []
        for key, left in list(self.running.items()):
            finish = "length" if len(left) == 1 else None
            updates.append(Update(key, [left.pop(0)], finish=finish))
            if finish:
                del self.running[key]
        exchange(updates)


class Pipes:
    """The model's ends of both pipes."""

    def __init__(self) -> None:
        worker_reads, self.commands = os.pipe()
        self.events, worker_writes = os.pipe()
        self.worker_ends = (worker_reads, worker_writes)
        self.channel = Channel(worker_reads, worker_writes)

    def send(self, *messages: Message) -> None:
        os.write(self.commands, encode(messages))

    def hang_up(self) -> None:
        os.close(self.commands)

    def received(self) -> list[Message]:
        return FrameReader().feed(os.read(self.events, 1 << 20))


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    for descriptor in (*made.worker_ends, made.events):
        os.close(descriptor)


def test_requests_are_answered_until_the_model_hangs_up(pipes: Pipes) -> None:
    pipes.send(Submit(1, Generation([5], 2)), Submit(2, Generation([5], 1)))
    pipes.hang_up()
    with pytest.raises(ParentGone):
        serve(CountingEngine(), pipes.channel)
    # The end of the pipe is seen at the exchange after the first step.
    assert encode(pipes.received()) == encode([Update(1, [1]), Update(2, [1], finish="length")])


def test_commands_reach_the_engine_between_two_tokens(pipes: Pipes) -> None:
    engine = CountingEngine()
    pipes.send(Submit(1, Generation([5], 1000)))
    pipes.send(Cancel(1))
    pipes.send(Cancel(77))
    pipes.hang_up()
    with pytest.raises(ParentGone):
        serve(engine, pipes.channel)
    assert engine.cancelled == [1, 77]


def test_an_exception_of_the_engine_leaves_the_loop(pipes: Pipes) -> None:
    pipes.send(Submit(1, Generation([13], 1)))
    with pytest.raises(RuntimeError, match="poisoned"):
        serve(CountingEngine(), pipes.channel)
    pipes.hang_up()


def test_a_model_that_reads_no_more_ends_the_worker(pipes: Pipes) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    pipes.send(Submit(1, Generation([5], 1)))
    with pytest.raises(ParentGone):
        serve(CountingEngine(), Channel(pipes.worker_ends[0], writer))
    os.close(writer)
    pipes.hang_up()
