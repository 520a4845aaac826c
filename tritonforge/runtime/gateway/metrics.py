"""The gateway's measurements as Triton metrics. Needs Triton's Python backend.

Counts go on across a reload of the gateway: Triton gives a family of the same name and labels back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import triton_python_backend_utils as pb_utils

from .answer import Usage

# From the fastest first token of a small model to what nobody waits for; fine around usual targets.
BUCKETS_S = (
    0.01,
    0.02,
    0.03,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.5,
    0.75,
    1.0,
    1.5,
    2.0,
    3.0,
    5.0,
    7.5,
    10.0,
    20.0,
    30.0,
)
_NO_VERSION = "none"
_log = logging.getLogger(__name__)


class TritonMeter:
    """Writes measurements to Triton's metrics endpoint; does nothing for what the server cannot take.

    Args:
        model: Name of the gateway model, a label of every metric.
    """

    def __init__(self, model: str) -> None:
        self._requests = _Family("tritonforge_requests_total", "Requests by outcome", model)
        self._prompt = _Family("tritonforge_prompt_tokens_total", "Tokens of the prompts of answered requests", model)
        self._completion = _Family("tritonforge_completion_tokens_total", "Tokens of answers", model)
        self._first = _Family(
            "tritonforge_time_to_first_token_seconds", "From a request to its first token", model, buckets=BUCKETS_S
        )
        self._next = _Family(
            "tritonforge_inter_token_seconds", "Per token, from one response of the engine to the next", model,
            buckets=BUCKETS_S,
        )  # fmt: skip

    def finished(self, version: int | None, outcome: str, usage: Usage | None = None) -> None:
        """A request is over."""
        self._requests.add(1, version=version, outcome=outcome)
        if usage is not None:
            self._prompt.add(usage.prompt_tokens, version=version)
            self._completion.add(usage.completion_tokens, version=version)

    def first_token(self, version: int, seconds: float) -> None:
        """Time from the arrival of a request to its first token."""
        self._first.observe(seconds, version=version)

    def next_tokens(self, version: int, seconds: float) -> None:
        """Time per token since the previous tokens of the same request."""
        self._next.observe(seconds, version=version)


class _Family:
    """One metric family and its metrics by labels; empty when the server does not take it."""

    def __init__(self, name: str, description: str, model: str, buckets: Sequence[float] | None = None) -> None:
        self._model = model
        self._buckets = buckets
        self._metrics: dict[tuple[str, ...], Any] = {}
        self._family: Any = None
        try:
            # Python backends before 24.10 have no histograms; a server with metrics off refuses every family.
            kind = pb_utils.MetricFamily.COUNTER if buckets is None else pb_utils.MetricFamily.HISTOGRAM
            self._family = pb_utils.MetricFamily(name=name, description=description, kind=kind)
        except Exception as error:  # noqa: BLE001 (measuring must never keep a model from serving)
            _log.warning("metric %s is not available: %s", name, error)

    def add(self, count: int, *, version: int | None, **labels: str) -> None:
        metric = self._metric(version, labels)
        if metric is not None:
            metric.increment(count)

    def observe(self, value: float, *, version: int) -> None:
        metric = self._metric(version, {})
        if metric is not None:
            metric.observe(value)

    def _metric(self, version: int | None, labels: Mapping[str, str]) -> Any:
        if self._family is None:
            return None
        number = _NO_VERSION if version is None else str(version)
        key = (number, *labels.values())
        if key not in self._metrics:
            every_label = {"model": self._model, "version": number, **labels}
            bounds = {} if self._buckets is None else {"buckets": list(self._buckets)}
            self._metrics[key] = self._family.Metric(labels=every_label, **bounds)
        return self._metrics[key]
