"""The demo's small load: a few clients that ask one question after another while the traffic moves."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType

from tritonforge.client import Client
from tritonforge.errors import TritonforgeError

MAX_TOKENS = 16
WAIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One request: which version answered, or why none did."""

    version: int | None
    ttft_ms: float
    inter_token_ms: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class VersionSummary:
    """What one engine version did under the load; times are medians."""

    version: int
    precision: str
    requests: int
    failed: int
    ttft_p50_ms: float
    itl_p50_ms: float


class Summary:
    """All answers of a load."""

    def __init__(self, answers: list[Answer]) -> None:
        self._answers = answers
        self.answers = len(answers)
        self.errors = [answer.error for answer in answers if answer.error is not None]
        self.failed = len(self.errors)

    def versions(self, precisions: Mapping[int, str]) -> list[VersionSummary]:
        """One row for each version in `precisions`."""
        return [self._version(version, precision) for version, precision in precisions.items()]

    def _version(self, version: int, precision: str) -> VersionSummary:
        mine = [a for a in self._answers if a.version == version and a.error is None]
        ttft_ms = statistics.median([a.ttft_ms for a in mine] or [0.0])
        itl_ms = statistics.median([a.inter_token_ms for a in mine] or [0.0])
        failed = sum(a.error is not None and a.version == version for a in self._answers)
        return VersionSummary(version, precision, len(mine), failed, ttft_ms, itl_ms)


class Load:
    """Clients that stream one answer after another until the context is left.

    Args:
        url: Address of the server.
        model: Public name of the model.
        prompt: What each client asks.
        clients: Requests in flight.
    """

    def __init__(self, url: str, *, model: str, prompt: str, clients: int) -> None:
        self._url = url
        self._model = model
        self._prompt = prompt
        self._answers: list[Answer] = []
        self._changed = threading.Condition()
        self._leaving = threading.Event()
        self._threads = [threading.Thread(target=self._ask_on, daemon=True) for _ in range(clients)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        for thread in self._threads:
            thread.join(WAIT_S)

    def wait_for_answers(self, more: int) -> None:
        """Wait until `more` further requests have been answered."""
        with self._changed:
            goal = len(self._answers) + more
            if not self._changed.wait_for(lambda: len(self._answers) >= goal, timeout=WAIT_S):
                raise TritonforgeError(f"{more} answers expected within {WAIT_S:.0f} s, {len(self._answers)} came")

    def summary(self) -> Summary:
        """What has been answered so far."""
        with self._changed:
            return Summary(list(self._answers))

    def _ask_on(self) -> None:
        with Client(self._url) as client:
            while not self._leaving.is_set():
                answer = self._ask(client)
                with self._changed:
                    self._answers.append(answer)
                    self._changed.notify_all()

    def _ask(self, client: Client) -> Answer:
        version = None
        arrivals = [time.perf_counter()]
        messages = [{"role": "user", "content": self._prompt}]
        try:
            for chunk in client.stream(self._model, messages=messages, max_tokens=MAX_TOKENS, timeout_s=WAIT_S):
                version = chunk.engine_version
                arrivals.append(time.perf_counter())
        except TritonforgeError as error:
            return Answer(version, 0.0, 0.0, error=str(error))
        ttft_s = arrivals[1] - arrivals[0]
        inter_token_s = (arrivals[-1] - arrivals[1]) / max(1, len(arrivals) - 2)
        return Answer(version, ttft_s * 1000, inter_token_s * 1000)
