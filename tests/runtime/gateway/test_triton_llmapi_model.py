"""Our own model for TensorRT-LLM's LLM API in a real Triton, asked directly; the library is a stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.gateway.text_repository import LLMAPI, POLY
from tritonforge.client import Client
from tritonforge.errors import Rejected
from tritonforge.server import RunningServer

pytestmark = pytest.mark.triton


@pytest.fixture
def grpc_client(text_server: RunningServer) -> Iterator[Client]:
    with Client(text_server.grpc_url, timeout_s=30.0) as connected:
        yield connected


def test_it_speaks_as_upstreams_does(grpc_client: Client) -> None:
    inputs = {
        "text_input": np.array([b"a b"], dtype=object),
        "streaming": np.array([True]),
        "sampling_param_max_tokens": np.array([9], dtype=np.int32),
        "return_finish_reason": np.array([True]),
        "return_stop_reason": np.array([True]),
        "return_cumulative_logprob": np.array([True]),
    }
    results = [result.outputs for result in grpc_client.infer_stream("poly_engine_v3", inputs) if result.outputs]
    texts = [outputs["text_output"].item().decode() for outputs in results]
    assert texts[-1] == "a b"
    assert all(after.startswith(before) for before, after in zip(texts, texts[1:], strict=False))  # the whole so far
    assert [outputs["finish_reason"].item() for outputs in results] == [b"None"] * (len(results) - 1) + [b"stop"]
    assert {outputs["stop_reason"].item() for outputs in results} == {b"None"}
    assert all(outputs["cumulative_logprob"].dtype == np.float32 for outputs in results)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"text_input": np.array([b"a", b"b"], dtype=object)}, "text_input has shape [2]; expected one string"),
        ({"text_input": np.array([], dtype=object)}, "text_input is missing or empty"),
        ({"text_input": np.array([b"\xff"], dtype=object)}, "text_input is not valid UTF-8"),
        (
            {"text_input": np.array([b"a"], dtype=object), "sampling_param_beam_width": np.array([2], dtype=np.int32)},
            "sampling_param_beam_width is 2; expected 1",
        ),
    ],
)
def test_it_refuses_by_name(grpc_client: Client, inputs: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(Rejected) as caught:
        list(grpc_client.infer_stream("poly_engine_v3", inputs))
    assert message in str(caught.value)


def test_a_version_folder_is_not_written_to_by_its_engine(text_server: RunningServer, grpc_client: Client) -> None:
    folder = Path(text_server.repository) / "poly_engine_v3" / "3"
    before = folder.stat().st_mtime_ns
    grpc_client.generate(POLY, "a", max_tokens=1, version=LLMAPI)
    assert folder.stat().st_mtime_ns == before
