"""Requests as clients of NVIDIA's ensembles send them: tritonclient alone over gRPC, plain JSON over HTTP."""

from __future__ import annotations

import json
import queue
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tritonclient.grpc as grpc_client

DEADLINE_S = 60.0
TYPES = {"int32": "INT32", "float32": "FP32", "bool": "BOOL", "uint64": "UINT64", "float16": "FP16", "object": "BYTES"}


@dataclass(frozen=True)
class Answer:
    """What came back: text of each response, other tensors of the last one, or an error."""

    texts: list[str]
    tensors: Mapping[str, np.ndarray]
    error: str | None = None


def ask(url: str, model: str, prompts: Sequence[str], *, max_tokens: int = 12, **more: np.ndarray) -> Answer:
    """Send one request over a gRPC stream, as decoupled models want it, and read its responses to the end.

    Args:
        url: ``host:port``.
        model: Name of the ensemble.
        prompts: One request carries them all, as a batch.
        max_tokens: The same for each prompt.
        more: Further tensors with their batch dimension.
    """
    size = len(prompts)
    tensors = {
        "text_input": np.array([[prompt.encode()] for prompt in prompts], dtype=np.object_),
        "max_tokens": np.full((size, 1), max_tokens, np.int32),
        **more,
    }
    arrived: queue.Queue[tuple[grpc_client.InferResult | None, Exception | None]] = queue.Queue()
    texts: list[str] = []
    last: dict[str, np.ndarray] = {}
    with grpc_client.InferenceServerClient(url) as client:
        client.start_stream(callback=lambda result, error: arrived.put((result, error)))
        inputs = [_input(name, array) for name, array in tensors.items()]
        client.async_stream_infer(model, inputs, request_id="1", enable_empty_final_response=True)
        while True:
            result, error = arrived.get(timeout=DEADLINE_S)
            if result is None:
                return Answer(texts, last, str(error))
            response = result.get_response()
            if response.outputs:
                last = {output.name: result.as_numpy(output.name) for output in response.outputs}
                # Clients read it in this way: the first element is the text.
                texts.extend(text.decode("utf-8") for text in last["text_output"])
            final = response.parameters.get("triton_final_response")
            if final is not None and final.bool_param:
                return Answer(texts, last)


def post(url: str, model: str, *, path: str = "generate", **body: object) -> tuple[int, str]:
    """Status and body of a request to the generate endpoint."""
    request = urllib.request.Request(f"{url}/v2/models/{model}/{path}", data=json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def events(body: str) -> list[dict[str, object]]:
    """The JSON objects of a stream of server-sent events."""
    return [json.loads(line.removeprefix("data: ")) for line in body.splitlines() if line.startswith("data: ")]


def _input(name: str, array: np.ndarray) -> grpc_client.InferInput:
    tensor = grpc_client.InferInput(name, list(array.shape), TYPES[array.dtype.name])
    tensor.set_data_from_numpy(array)
    return tensor
