"""Serves requests: checks, routes and tokenises, follows the engine's events, and sends the answer. No Triton here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..tensors import Array, Inputs, RequestRejected
from .answer import Answer
from .answer_text import new_text
from .dialects import DIALECTS
from .engine import ClientGone, Ended, Engine, EngineCall, Event, Failure, Mailbox, Text, Tokens, new_request_id
from .errors import EngineFailed, Status, VersionBroken
from .meter import ERROR, REJECTED, Meter
from .presence import Presence
from .prompt import Prompt
from .prompt_threads import PromptThreads
from .request import TextRequest, parse_request
from .routing import Routes, choose_version
from .serving import LoadedVersions, ServedVersion
from .text_stream import CANCELLED
from .unserved import refuse_unserved

_STOP_ATTEMPTS = 5
_STOP_PATIENCE_S = 1.0
_log = logging.getLogger(__name__)


class Sender(Protocol):
    """The way back to one client."""

    def send(self, outputs: Mapping[str, Array], *, final: bool) -> None:
        """Send a response."""

    def fail(self, message: str, status: Status) -> None:
        """Send an error; nothing may follow."""

    def is_gone(self) -> bool:
        """Whether the client has cancelled or disconnected."""


@dataclass(frozen=True, slots=True)
class _Plan:
    request: TextRequest
    prompt: Prompt
    version: ServedVersion
    call: EngineCall
    received_s: float


class Gateway:
    """All requests of one gateway model, in one event loop.

    Args:
        versions: Engine versions.
        routes: How traffic is divided among them.
        engine: Runs engine calls.
        meter: Takes the measurements.
    """

    def __init__(
        self,
        versions: LoadedVersions,
        routes: Routes,
        *,
        engine: Engine,
        meter: Meter,
    ) -> None:
        self._versions = versions
        self._routes = routes
        self._engine = engine
        self._meter = meter
        self._presence = Presence()
        self._prompts = PromptThreads()

    async def serve(self, inputs: Inputs, sender: Sender) -> None:
        """Answer one request: one error, one response, or a stream of them. Ends when the engine is done with it."""
        try:
            plan = await self._plan(inputs)
        except RequestRejected as error:
            self._meter.finished(None, REJECTED)
            sender.fail(str(error), Status.INVALID_ARG)
            return
        except VersionBroken as error:
            self._meter.finished(error.number, ERROR)
            sender.fail(str(error), Status.UNAVAILABLE)
            return
        await self._generate(plan, sender)

    def close(self) -> None:
        """Give up what no client waits for any more; call it once, after the last request."""
        self._prompts.close()

    async def _plan(self, inputs: Inputs) -> _Plan:
        received_s = time.monotonic()
        request = parse_request(inputs)
        number = choose_version(
            self._routes,
            [*self._versions.served, *self._versions.broken],
            pinned=request.version,
            sticky_key=request.sticky_key,
            draw=random.random(),  # not a secret: it only divides traffic
        )
        if number in self._versions.broken:
            raise VersionBroken(number, self._versions.broken[number])
        version = self._versions.served[number]
        refuse_unserved(request, version)
        prompt = await self._prompts.build(request, version)
        # Never the client's own id: two clients may choose the same one, and stopping goes by the id.
        call = DIALECTS[version.dialect].generate_call(request, prompt, version, request_id=new_request_id())
        return _Plan(request, prompt, version, call, received_s)

    async def _generate(self, plan: _Plan, sender: Sender) -> None:
        mailbox = Mailbox()
        number = plan.version.number
        answer = Answer(
            new_text(plan.request, plan.prompt, plan.version),
            engine_version=number,
            with_log_probs=plan.request.return_log_probs,
        )
        with self._presence.watch(sender.is_gone, mailbox):
            self._engine.start(plan.call, mailbox)
            try:
                engine_ended = await self._follow(plan, answer, mailbox, sender)
            except EngineFailed as error:
                self._meter.finished(number, ERROR)
                sender.fail(str(error), error.status)
                return
            except Exception:
                # A fault of ours must not leave the engine working for nobody.
                await self._release(plan.call, mailbox, tell=True)
                raise
        sender.send(answer.take_chunk(), final=True)
        self._meter.finished(number, str(answer.finish_reason), answer.usage)
        if not engine_ended:
            await self._release(plan.call, mailbox, tell=answer.was_cut)

    async def _follow(self, plan: _Plan, answer: Answer, mailbox: Mailbox, sender: Sender) -> bool:
        """Read events until the answer is over; returns whether the engine is done with the call, too."""
        pace = _Pace(self._meter, plan)
        answered = False
        while True:
            events = await mailbox.read()
            pace.observe(events)
            for event in events:
                if isinstance(event, Tokens | Text):
                    answered = True
                    answer.add(event)
                elif isinstance(event, Failure) and answer.finish_reason is None:
                    raise EngineFailed(plan.version.engine_model, event.reason)
            ended, gone = Ended() in events, ClientGone() in events
            if ended and not answered and not gone:
                raise EngineFailed(
                    plan.version.engine_model, "it ended the request without a token and without a reason"
                )
            if answer.finish_reason is not None or ended or gone:
                answer.finish(None if ended else CANCELLED)
                return ended
            if plan.request.stream and answer.has_news:
                sender.send(answer.take_chunk(), final=False)

    async def _release(self, call: EngineCall, mailbox: Mailbox, *, tell: bool) -> None:
        """Wait until the engine is done with a call whose answer is over.

        Args:
            call: The call.
            mailbox: Its events.
            tell: Send a stop at once. Otherwise only when the engine, which knows the end tokens, does not end by
                itself.
        """
        for attempt in range(_STOP_ATTEMPTS):
            # Repeated, because a stop that overtakes its own request finds nothing to stop.
            if tell or attempt > 0:
                await self._stop(call)
            if await _ended_within(mailbox, _STOP_PATIENCE_S):
                return
        _log.warning("engine model %s goes on with request %s after its stop", call.engine_model, call.request_id)
        # Else the stream of every such request would stay open for as long as the gateway lives.
        self._engine.hang_up(call)

    async def _stop(self, call: EngineCall) -> None:
        stop = DIALECTS[call.dialect].stop_call(call)
        if stop is None:
            self._engine.hang_up(call)
        else:
            await self._engine.send_stop(stop)


class _Pace:
    """Times between the arrivals of tokens, for calls whose engine streams."""

    def __init__(self, meter: Meter, plan: _Plan) -> None:
        self._meter = meter
        self._number = plan.version.number
        self._streams = plan.call.streams
        self._received_s = plan.received_s
        self._last_s: float | None = None

    def observe(self, events: list[Event]) -> None:
        count = sum(_tokens_of(event) for event in events)
        if count == 0 or not self._streams:
            return
        now_s = time.monotonic()
        if self._last_s is None:
            self._meter.first_token(self._number, now_s - self._received_s)
        else:
            self._meter.next_tokens(self._number, (now_s - self._last_s) / count)
        self._last_s = now_s


def _tokens_of(event: Event) -> int:
    """Tokens that arrived with an event; a text whose tokens nobody counts stands for one."""
    if isinstance(event, Tokens):
        return len(event.token_ids)
    if isinstance(event, Text):
        return bool(event.text) if event.tokens is None else event.tokens
    return 0


async def _ended_within(mailbox: Mailbox, patience_s: float) -> bool:
    deadline_s = time.monotonic() + patience_s
    with contextlib.suppress(asyncio.TimeoutError):
        while True:
            events = await asyncio.wait_for(mailbox.read(), max(0.0, deadline_s - time.monotonic()))
            if Ended() in events:
                return True
    return False
