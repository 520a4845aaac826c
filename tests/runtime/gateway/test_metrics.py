"""Metrics on servers that lack a part of them. The module that Triton provides is stood in for."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import pytest

from tritonforge.runtime.gateway.answer import Usage


class Family:
    """Counts like Triton's MetricFamily, which refuses kinds that it does not have."""

    COUNTER = "counter"
    made: dict[str, Family] = {}

    def __init__(self, *, name: str, description: str, kind: str) -> None:
        self.values: dict[tuple[str, ...], float] = {}
        self.made[name] = self

    def Metric(self, *, labels: dict[str, str]) -> Any:  # Triton's name
        family, key = self, tuple(labels.values())

        class Metric:
            def increment(self, count: float) -> None:
                family.values[key] = family.values.get(key, 0) + count

        return Metric()


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Any:
    backend = ModuleType("triton_python_backend_utils")
    backend.MetricFamily = Family  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend)
    monkeypatch.delitem(sys.modules, "tritonforge.runtime.gateway.metrics", raising=False)
    yield importlib.import_module("tritonforge.runtime.gateway.metrics")
    sys.modules.pop("tritonforge.runtime.gateway.metrics", None)


def test_a_server_without_histograms_still_counts(metrics: Any) -> None:
    meter = metrics.TritonMeter("m")
    meter.first_token(1, 0.5)
    meter.next_tokens(1, 0.5)
    meter.finished(1, "stop", Usage(3, 4))
    meter.finished(None, "rejected")
    assert Family.made["tritonforge_requests_total"].values == {
        ("m", "1", "stop"): 1,
        ("m", "none", "rejected"): 1,
    }
    assert Family.made["tritonforge_completion_tokens_total"].values == {("m", "1"): 4}


def test_a_server_without_metrics_serves_all_the_same(metrics: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["triton_python_backend_utils"], "MetricFamily")
    meter = metrics.TritonMeter("m")
    meter.finished(1, "stop", Usage(3, 4))
    meter.first_token(1, 0.5)
