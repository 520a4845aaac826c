"""A running server takes what was published, and proves that it did; or it takes back what it had."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import numpy as np

from tritonforge.client import Client, GenerateOptions
from tritonforge.errors import ClientError, PublishFailed
from tritonforge.repository.ensemble import EnsembleNames
from tritonforge.repository.layout import engine_model_name
from tritonforge.spec.layout import GATEWAY, Layout
from tritonforge.spec.tests import TestSpec

LOAD_TIMEOUT_S = 600.0
PROBE_TIMEOUT_S = 120.0


class LiveServer:
    """The side of a publish that happens on a running server.

    Args:
        client: The server.
        gateway: Public name of the model.
        engines: Engine models that are put in place.
        parts: Further models that are put in place between the two.
        text_versions: Versions whose engines take text: they are asked through the gateway, which knows their tensors.
    """

    def __init__(
        self,
        client: Client,
        *,
        gateway: str,
        engines: Collection[str],
        parts: Collection[str] = (),
        text_versions: Collection[int] = (),
    ) -> None:
        self._client = client
        self._gateway = gateway
        self._engines = tuple(engines)
        self._parts = tuple(parts)
        self._text_versions = tuple(text_versions)
        self._were_ready = {name for name in (gateway, *engines, *parts) if client.model_ready(name)}

    def take(self) -> None:
        """Load the new engines, see that each answers, then load the gateway that routes to them.

        Raises:
            ClientError: The server refused a model, with its reason.
            NotReady: A model did not become ready in time.
            PublishFailed: An engine is loaded, but answers nothing.
        """
        text_engines = {engine_model_name(self._gateway, number) for number in self._text_versions}
        for engine in self._engines:
            self._load(engine)
            if engine not in text_engines:
                self._probe(engine)
        for part in self._parts:
            self._load(part)
        self._load(self._gateway)
        for number in self._text_versions:
            options = GenerateOptions(max_tokens=1, version=number)
            self._client.generate(self._gateway, "a", timeout_s=PROBE_TIMEOUT_S, **options)

    def take_back(self) -> None:
        """Make the server serve again what is on disk, which is what was there before."""
        for name in (self._gateway, *reversed(self._parts), *self._engines):
            if name in self._were_ready:
                self._load(name)
            else:
                with suppress(ClientError):  # it may never have been loaded
                    self._client.unload(name)

    def run_tests(self, tests: Collection[TestSpec], version: int, *, layout: Layout = GATEWAY) -> None:
        """Ask a version the spec's questions.

        Args:
            tests: The questions.
            version: The version: an ensemble of its own, or the one that a gateway is asked for.
            layout: Layout of the model.

        Raises:
            PublishFailed: An answer is not what the spec expects.
            ClientError: A question was not answered.
        """
        for number, test in enumerate(tests, start=1):
            text = self._ask(test, version, layout)
            problem = test.problem_with(text)
            if problem is not None:
                raise PublishFailed(f"{self._gateway} version {version} fails test {number}: {problem}")

    def _ask(self, test: TestSpec, version: int, layout: Layout) -> str:
        options = GenerateOptions(max_tokens=test.max_tokens, temperature=test.temperature)
        if layout == GATEWAY:
            options["version"] = version
        model = self._gateway if layout == GATEWAY else EnsembleNames(self._gateway, version).pinned
        if test.random_seed is not None:
            options["random_seed"] = test.random_seed
        messages = None if test.messages is None else [message.model_dump() for message in test.messages]
        answer = self._client.generate(model, test.prompt, messages=messages, timeout_s=PROBE_TIMEOUT_S, **options)
        return answer.text

    def _load(self, name: str) -> None:
        self._client.load(name, timeout_s=LOAD_TIMEOUT_S)
        self._client.wait_ready(name, timeout_s=LOAD_TIMEOUT_S)

    def _probe(self, engine: str) -> None:
        """One token from one token: ready in the index is not yet an answer."""
        one = np.ones((1, 1), dtype=np.int32)
        inputs = {"input_ids": one, "input_lengths": one, "request_output_len": one}
        tokens = 0
        for result in self._client.infer_stream(engine, inputs, timeout_s=PROBE_TIMEOUT_S):
            output = result.outputs.get("output_ids")
            tokens += 0 if output is None else output.size
        if not tokens:
            raise PublishFailed(f"{engine} is loaded, but its answer to a first request holds no token")
