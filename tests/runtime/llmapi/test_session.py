"""Generations in their event loop: answers, errors, clients that leave, and the end. The engine is a script."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.processes import wait_until
from tritonforge.runtime.llmapi.requests import Generation
from tritonforge.runtime.llmapi.session import Session

DEADLINE_S = 10.0


@dataclass
class Completion:
    text: str


@dataclass
class Output:
    outputs: list[Completion]
    finished: bool


class Result:
    """Plays texts; an exception is raised, None waits for ever."""

    def __init__(self, script: list[Any]) -> None:
        self.script = list(script)
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True

    def __aiter__(self) -> Result:
        return self

    async def __anext__(self) -> Output:
        if not self.script:
            raise StopAsyncIteration
        item = self.script.pop(0)
        if item is None:
            await asyncio.Event().wait()
        if isinstance(item, Exception):
            raise item
        return Output([Completion(item)], finished=not self.script)


@dataclass
class Llm:
    script: list[Any]
    asked: list[tuple[str, Any, bool]] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    was_shut_down: bool = False

    def generate_async(self, prompt: str, *, sampling_params: Any, streaming: bool) -> Result:
        self.asked.append((prompt, sampling_params, streaming))
        self.results.append(Result(self.script))
        return self.results[-1]

    def shutdown(self) -> None:
        self.was_shut_down = True


class Reply:
    def __init__(self) -> None:
        self.sent: list[tuple[str, bool]] = []
        self.ends: list[str] = []
        self.gone = False
        self.closed = threading.Event()

    def send(self, completion: Completion, *, final: bool) -> None:
        self.sent.append((completion.text, final))
        if final:
            self.closed.set()

    def fail(self, reason: str) -> None:
        self.ends.append(reason)
        self.closed.set()

    def cancel(self) -> None:
        self.ends.append("cancelled")
        self.closed.set()

    def is_gone(self) -> bool:
        return self.gone


@pytest.fixture
def sessions() -> Iterator[list[Session]]:
    started: list[Session] = []
    yield started
    for session in started:
        session.close()


def ask(sessions: list[Session], llm: Llm, *, streaming: bool = True) -> Reply:
    session, reply = Session(llm, dict, check_period_s=0.01), Reply()
    sessions.append(session)
    session.submit(Generation("p", {"max_tokens": 3}, streaming, ()), reply)
    return reply


@pytest.mark.parametrize(
    ("streaming", "sent"),
    [(True, [("a", False), ("ab", False), ("abc", True)]), (False, [("abc", True)])],
)
def test_every_text_is_sent_while_streaming_and_else_the_last(
    sessions: list[Session], streaming: bool, sent: list[tuple[str, bool]]
) -> None:
    llm = Llm(["a", "ab", "abc"])
    reply = ask(sessions, llm, streaming=streaming)
    assert reply.closed.wait(DEADLINE_S)
    assert (reply.sent, reply.ends) == (sent, [])
    assert llm.asked == [("p", {"max_tokens": 3}, streaming)]


def test_an_error_is_answered_once(sessions: list[Session]) -> None:
    reply = ask(sessions, Llm(["a", ValueError("no room")]))
    assert reply.closed.wait(DEADLINE_S)
    assert reply.ends == ["ValueError: no room"]


def test_an_engine_that_ends_without_a_word_has_failed(sessions: list[Session]) -> None:
    reply = ask(sessions, Llm([]))
    assert reply.closed.wait(DEADLINE_S)
    assert reply.ends == ["the engine ended the request without an answer and without a reason"]


@pytest.mark.parametrize("streaming", [True, False])
def test_a_client_that_leaves_ends_its_generation(sessions: list[Session], streaming: bool) -> None:
    llm = Llm([None, "never"])
    reply = ask(sessions, llm, streaming=streaming)
    wait_until(lambda: bool(llm.results), "the generation to begin", timeout_s=DEADLINE_S)
    reply.gone = True
    assert reply.closed.wait(DEADLINE_S)
    assert (llm.results[0].aborted, reply.ends) == (True, ["cancelled"])


def test_the_end_of_a_session_ends_its_generations_and_its_engine() -> None:
    llm = Llm([None, "never"])
    started: list[Session] = []
    reply = ask(started, llm)
    wait_until(lambda: bool(llm.results), "the generation to begin", timeout_s=DEADLINE_S)
    started[0].close()
    assert reply.closed.wait(DEADLINE_S)
    assert (reply.ends, llm.was_shut_down) == (["cancelled"], True)
    assert "llmapi" not in {thread.name for thread in threading.enumerate()}
