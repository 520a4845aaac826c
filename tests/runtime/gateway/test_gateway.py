"""Serving without Triton: what the client gets for what the engine does. The engine is a script, for its faults."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import pytest

from tests.runtime.gateway.requests import inputs_of
from tests.runtime.gateway.versions import END, version
from tritonforge.runtime.gateway import gateway as gateway_module
from tritonforge.runtime.gateway.answer import Usage
from tritonforge.runtime.gateway.engine import Ended, EngineCall, Event, Failure, Mailbox, Tokens
from tritonforge.runtime.gateway.errors import Status
from tritonforge.runtime.gateway.gateway import Gateway
from tritonforge.runtime.gateway.routing import Routes
from tritonforge.runtime.gateway.serving import LoadedVersions
from tritonforge.runtime.tensors import Array

DEADLINE_S = 20.0


@dataclass
class ScriptedEngine:
    """Plays events for every call; `None` waits until the call is stopped."""

    script: list[Event | None]
    pause: Callable[[], Awaitable[None]] | None = None
    deaf_stops: int = 0
    calls: list[EngineCall] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    hung_up: list[str] = field(default_factory=list)
    running: int = 0
    most_running: int = 0

    def start(self, call: EngineCall, mailbox: Mailbox) -> None:
        self.calls.append(call)
        self.task = asyncio.ensure_future(self._play(mailbox))

    async def send_stop(self, stop: EngineCall) -> None:
        self.stops.append(stop.request_id)
        if len(self.stops) > self.deaf_stops:
            self._stopped.set()

    def hang_up(self, call: EngineCall) -> None:
        self.hung_up.append(call.request_id)
        self._stopped.set()

    async def _play(self, mailbox: Mailbox) -> None:
        self._stopped = asyncio.Event()
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        for event in self.script:
            if event is None:
                await self._stopped.wait()
            else:
                mailbox.put(event)
            if self.pause is not None:
                await self.pause()
        self.running -= 1
        mailbox.put(Ended())


@dataclass
class Client:
    """Keeps what it is sent."""

    gone: bool = False
    leaves_after: int | None = None
    responses: list[Mapping[str, Array]] = field(default_factory=list)
    error: tuple[str, Status] | None = None
    is_closed: bool = False

    def send(self, outputs: Mapping[str, Array], *, final: bool) -> None:
        assert not self.is_closed
        self.responses.append(outputs)
        self.is_closed = final
        self.gone = self.gone or len(self.responses) == self.leaves_after

    def fail(self, message: str, status: Status) -> None:
        assert not self.is_closed
        self.error, self.is_closed = (message, status), True

    def is_gone(self) -> bool:
        return self.gone

    def text(self) -> str:
        return "".join(response["text_output"].item().decode() for response in self.responses)

    def last(self, name: str) -> object:
        value = self.responses[-1][name].item()
        return value.decode() if isinstance(value, bytes) else value


@dataclass
class Meter:
    """Keeps what is measured."""

    outcomes: list[tuple[int | None, str, Usage | None]] = field(default_factory=list)
    first_tokens: list[float] = field(default_factory=list)
    next_tokens_s: list[float] = field(default_factory=list)

    def finished(self, version: int | None, outcome: str, usage: Usage | None = None) -> None:
        self.outcomes.append((version, outcome, usage))

    def first_token(self, version: int, seconds: float) -> None:
        self.first_tokens.append(seconds)

    def next_tokens(self, version: int, seconds: float) -> None:
        self.next_tokens_s.append(seconds)


def serve(
    engine: ScriptedEngine,
    client: Client | None = None,
    meter: Meter | None = None,
    shares: Mapping[int, float] | None = None,
    **fields: object,
) -> Client:
    client = client or Client()

    async def run() -> None:
        versions = LoadedVersions({1: version(1), 2: version(2)}, {3: "tokenizer.json cannot be read"})
        routes = Routes(shares or {1: 1.0, 2: 0.0}, "m")
        gateway = Gateway(versions, routes, engine=engine, meter=meter or Meter())
        await asyncio.wait_for(gateway.serve(inputs_of(**{"text_input": "Hi", **fields}), client), DEADLINE_S)

    asyncio.run(run())
    assert client.is_closed
    return client


def say(text: str) -> Tokens:
    return Tokens(tuple(text.encode()))


async def until_read() -> None:
    """Give the reader of the mailbox its turn."""
    for _ in range(3):
        await asyncio.sleep(0)


def test_without_streaming_there_is_exactly_one_response() -> None:
    meter = Meter()
    client = serve(ScriptedEngine([say(" all"), say(" of it"), Tokens((END,))], until_read), meter=meter)
    assert len(client.responses) == 1
    assert (client.text(), client.last("finish_reason"), client.last("engine_version")) == (" all of it", "stop", 1)
    assert (client.last("prompt_tokens"), client.last("completion_tokens")) == (2, 10)
    assert meter.outcomes == [(1, "stop", Usage(2, 10))]


def test_a_stream_has_a_response_per_event_and_the_last_one_says_how_it_ended() -> None:
    meter = Meter()
    client = serve(ScriptedEngine([say("a"), say("b"), say("c")], until_read), meter=meter, stream=True, max_tokens=3)
    assert [response["text_output"].item() for response in client.responses] == [b"a", b"b", b"c", b""]
    assert ["finish_reason" in response for response in client.responses] == [False, False, False, True]
    assert client.last("finish_reason") == "length"
    assert (len(meter.first_tokens), len(meter.next_tokens_s)) == (1, 2)


def test_what_has_queued_up_is_sent_at_once() -> None:
    client = serve(ScriptedEngine([say("a"), say("b"), say("c")]), stream=True)
    assert [response["text_output"].item() for response in client.responses] == [b"abc"]


@pytest.mark.parametrize("shows_end", [True, False])
def test_an_engine_that_ends_by_itself_is_not_stopped(shows_end: bool) -> None:
    engine = ScriptedEngine([say("ab"), *([Tokens((END,))] if shows_end else [])], until_read)
    client = serve(engine, stream=True)
    assert (client.text(), client.last("finish_reason"), engine.stops) == ("ab", "stop", [])


def test_a_stop_word_ends_the_answer_and_the_engine() -> None:
    engine = ScriptedEngine([say("one. tw"), say("o. three"), None])
    client = serve(engine, stop_words="two")
    assert (client.text(), client.last("finish_reason")) == ("one. ", "stop")
    assert engine.stops == [engine.calls[0].request_id]


def test_a_client_that_leaves_before_the_first_token_stops_the_engine() -> None:
    engine, meter = ScriptedEngine([None]), Meter()
    client = serve(engine, Client(gone=True), meter, stream=True)
    assert client.last("finish_reason") == "cancelled"
    assert engine.stops == [engine.calls[0].request_id]
    assert [(number, outcome) for number, outcome, _ in meter.outcomes] == [(1, "cancelled")]


def test_a_client_that_leaves_in_the_middle_stops_the_engine() -> None:
    engine = ScriptedEngine([say("a"), None], until_read)
    client = serve(engine, Client(leaves_after=1), stream=True)
    assert (client.text(), client.last("finish_reason")) == ("a", "cancelled")
    assert len(engine.stops) == 1


def test_a_stop_that_overtakes_its_request_is_repeated() -> None:
    engine = ScriptedEngine([None], deaf_stops=1)
    serve(engine, Client(gone=True))
    assert engine.stops == [engine.calls[0].request_id] * 2


def test_an_engine_that_is_deaf_to_stops_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_module, "_STOP_PATIENCE_S", 0.001)
    engine = ScriptedEngine([None], deaf_stops=100)
    serve(engine, Client(gone=True))
    assert engine.hung_up == [engine.calls[0].request_id]


def test_an_engines_error_carries_its_name() -> None:
    meter = Meter()
    client = serve(ScriptedEngine([Failure("no blocks are left")]), meter=meter)
    assert client.error == ("engine model 'm_engine_v1': no blocks are left", Status.INTERNAL)
    assert meter.outcomes == [(1, "error", None)]


@pytest.mark.parametrize("stream", [True, False])
def test_an_engine_that_ends_without_a_word_has_failed(stream: bool) -> None:
    meter = Meter()
    client = serve(ScriptedEngine([]), meter=meter, stream=stream)
    expected = "engine model 'm_engine_v1': it ended the request without a token and without a reason"
    assert (client.error, client.responses) == ((expected, Status.INTERNAL), [])
    assert meter.outcomes == [(1, "error", None)]


def test_an_engine_may_answer_with_no_tokens() -> None:
    client = serve(ScriptedEngine([Tokens(())]))
    assert (client.text(), client.last("finish_reason"), client.last("completion_tokens")) == ("", "stop", 0)


def test_an_error_in_the_middle_of_a_stream_ends_it() -> None:
    client = serve(ScriptedEngine([say("a"), Failure("broken")], until_read), stream=True)
    assert (client.text(), client.error) == ("a", ("engine model 'm_engine_v1': broken", Status.INTERNAL))


def test_an_engine_that_is_not_loaded_is_named_with_what_to_do() -> None:
    client = serve(ScriptedEngine([Failure("Failed for execute. Model 'm_engine_v2' is not ready.")]), version=2)
    assert client.error is not None
    message, status = client.error
    assert message.startswith("engine model 'm_engine_v2' is not ready; load it (tritonforge load m_engine_v2")
    assert status is Status.UNAVAILABLE


def test_an_engine_whose_process_has_ended_is_named_with_what_to_do() -> None:
    client = serve(ScriptedEngine([Failure("Stub process 'm_engine_v1_0_0' is not healthy.")]))
    assert client.error is not None
    message, status = client.error
    assert message.startswith(
        "engine model 'm_engine_v1': its process has ended (Stub process 'm_engine_v1_0_0' is not"
    )
    assert "unload it and load it again (tritonforge unload m_engine_v1, then load; or POST" in message
    assert status is Status.UNAVAILABLE


def test_a_wrong_request_never_reaches_the_engine() -> None:
    engine, meter = ScriptedEngine([]), Meter()
    client = serve(engine, meter=meter, max_tokens=0)
    assert client.error == ("max_tokens is 0; expected an integer from 1 to 2147483647", Status.INVALID_ARG)
    assert (engine.calls, meter.outcomes) == ([], [(None, "rejected", None)])


@pytest.mark.parametrize(("shares", "fields"), [({3: 1.0}, {}), (None, {"version": 3})])
def test_a_version_that_could_not_be_loaded_answers_with_its_reason(
    shares: Mapping[int, float] | None, fields: dict[str, object]
) -> None:
    engine, meter = ScriptedEngine([say("a")]), Meter()
    client = serve(engine, meter=meter, shares=shares, **fields)
    assert client.error is not None
    message, status = client.error
    assert message.startswith("version 3 cannot be served: tokenizer.json cannot be read; build it again")
    assert (status, engine.calls, meter.outcomes) == (Status.UNAVAILABLE, [], [(3, "error", None)])


def test_log_probabilities_come_with_their_tokens_and_stop_at_the_end_token() -> None:
    script: list[Event | None] = [Tokens((97,), (-1.0,), -1.0), Tokens((98, END), (-0.5, -9.0), -10.5)]
    client = serve(ScriptedEngine(script, until_read), return_log_probs=True, stream=True)
    sent = [response["output_log_probs"].tolist() for response in client.responses]
    assert sent == [[[[-1.0]]], [[[-0.5]]]]
    assert client.last("cum_log_probs") == pytest.approx(-1.5)


def test_a_fault_while_sending_stops_the_engine() -> None:
    class Broken(Client):
        def send(self, outputs: Mapping[str, Array], *, final: bool) -> None:
            raise OSError("no shared memory is left")

    engine = ScriptedEngine([say("a"), None], until_read)
    with pytest.raises(OSError, match="no shared memory"):
        serve(engine, Broken(), stream=True)
    assert len(engine.stops) == 1


def test_request_ids_are_unique() -> None:
    engine = ScriptedEngine([say("a")])
    serve(engine)
    serve(engine)
    assert len({call.request_id for call in engine.calls}) == 2


def test_input_that_the_engine_cannot_serve_is_refused_before_it() -> None:
    engine, client, meter = ScriptedEngine([say("a")]), Client(), Meter()
    unable = dataclasses.replace(version(1), unserved_inputs=("bad_words",))

    async def run() -> None:
        gateway = Gateway(LoadedVersions({1: unable}, {}), Routes({1: 1.0}, "m"), engine=engine, meter=meter)
        await gateway.serve(inputs_of(text_input="Hi", bad_words="no"), client)

    asyncio.run(run())
    assert client.error is not None
    assert client.error[0].startswith("bad_words is given; engine version 1 cannot serve it")
    assert (engine.calls, [outcome for _, outcome, _ in meter.outcomes]) == ([], ["rejected"])
