"""A running server that takes a version and does not answer: the publish fails with the reason."""

from collections.abc import Iterator

import pytest

from tritonforge.client import InferResult
from tritonforge.errors import PublishFailed
from tritonforge.pipeline.live import LiveServer


class SilentServer:
    """Loads whatever it is asked to, and gives no tokens."""

    def model_ready(self, model: str) -> bool:
        return False

    def load(self, model: str, *, timeout_s: float) -> None: ...

    def wait_ready(self, model: str, *, timeout_s: float) -> None: ...

    def infer_stream(self, model: str, inputs: object, *, timeout_s: float) -> Iterator[InferResult]:
        return iter(())


def test_an_engine_that_gives_no_token_is_not_taken() -> None:
    live = LiveServer(SilentServer(), gateway="tiny", engines=["tiny_engine_v1"])

    with pytest.raises(
        PublishFailed, match="tiny_engine_v1 is loaded, but its answer to a first request holds no token"
    ):
        live.take()


class TextServer(SilentServer):
    """Notes what it is asked to do."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def load(self, model: str, *, timeout_s: float) -> None:
        self.asked.append(("load", model))

    def generate(self, model: str, prompt: str, **options: object) -> None:
        self.asked.append(("generate", model, options["version"]))


def test_an_engine_that_takes_text_is_asked_through_the_gateway() -> None:
    server = TextServer()

    LiveServer(server, gateway="tiny", engines=["tiny_engine_v2"], text_versions=[2]).take()

    assert server.asked == [("load", "tiny_engine_v2"), ("load", "tiny"), ("generate", "tiny", 2)]
