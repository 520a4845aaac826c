"""The embedded engine as a Triton model: token ids in, token ids out, with the tensors of the `tensorrtllm` backend.

The only file of the engine's runtime that knows Triton. Requests are checked here, run in the worker process, and
answered from the dispatcher's thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from ..tensors import RequestRejected, read_inputs
from .dispatcher import Dispatcher, EngineDown
from .protocol import Update
from .requests import is_stop, read_request
from .settings import EngineSettings

LOAD_DEADLINE_S = 600.0
LOG_PROB_OUTPUTS = {"cum_log_probs", "output_log_probs"}
OUTPUTS = {"output_ids", "sequence_length"} | LOG_PROB_OUTPUTS
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    """One instance of one engine version."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the engine; Triton reports the model as failed, with the reason, when that raises."""
        folder = Path(args["model_repository"]) / args["model_version"]
        name = args["model_name"]
        self._settings = EngineSettings.read(folder)
        self._dispatcher = Dispatcher(folder, log=lambda line: pb_utils.Logger.log_info(f"{name}: {line}"))
        pb_utils.Logger.log_info(f"{name}: loading {self._settings}")
        self._dispatcher.start(deadline_s=LOAD_DEADLINE_S)

    def execute(self, requests: Sequence[Any]) -> None:
        """Begin the requests. Answers come later, from another thread."""
        for request in requests:
            sender = request.get_response_sender()
            try:
                self._begin(request, sender)
            except RequestRejected as error:
                _refuse(sender, str(error), pb_utils.TritonError.INVALID_ARG)
            except EngineDown as error:
                _refuse(sender, str(error), pb_utils.TritonError.UNAVAILABLE)
            except Exception as error:  # noqa: BLE001 - whatever it is, no client may be left waiting for an answer
                _refuse(sender, f"{type(error).__name__}: {error}", pb_utils.TritonError.INTERNAL)

    def finalize(self) -> None:
        """End the worker process."""
        self._dispatcher.close()

    def _begin(self, request: Any, sender: Any) -> None:
        inputs = read_inputs(request)
        if is_stop(inputs):
            self._dispatcher.cancel(request.request_id())
            sender.send(flags=FINAL)
            return
        wanted = read_request(inputs, self._settings)
        outputs = set(request.requested_output_names()) or OUTPUTS
        if not wanted.generation.log_probs:
            outputs = outputs - LOG_PROB_OUTPUTS
        reply = Reply(request.request_id(), sender, streaming=wanted.streaming, outputs=outputs)
        self._dispatcher.submit(wanted.generation, reply)


class Reply:
    """The answer to one request: a response per update while streaming, otherwise one at the end.

    Args:
        request_id: The client's name for the request.
        sender: Triton's response sender.
        streaming: Send tokens as they come.
        outputs: Names of the tensors to send; each costs time for every token.
    """

    def __init__(self, request_id: str, sender: Any, *, streaming: bool, outputs: AbstractSet[str]) -> None:
        self.request_id = request_id
        self._sender = sender
        self._streaming = streaming
        self._wanted = outputs
        self._ids: list[int] = []  # what has not been sent yet
        self._token_log_probs: list[float] = []

    def is_cancelled(self) -> bool:
        """Whether the client has gone."""
        return bool(self._sender.is_cancelled())

    def update(self, update: Update) -> None:
        """Take news of the request, and send what is due."""
        if update.error is not None:
            _refuse(self._sender, update.error, pb_utils.TritonError.UNAVAILABLE)
            return
        self._ids.extend(update.ids)
        self._token_log_probs.extend(update.log_probs)
        if self._streaming and self._ids or update.final and not self._streaming:
            response = pb_utils.InferenceResponse(self._outputs(update.cum_log_prob))
            self._sender.send(response, flags=FINAL if update.final else 0)
            self._ids.clear()
            self._token_log_probs.clear()
        elif update.final:
            self._sender.send(flags=FINAL)

    def _outputs(self, cum_log_prob: float) -> list[Any]:
        """The tensors of the tokens not sent yet; shapes [batch, beam, tokens] and [batch, beam], both of 1."""
        values: dict[str, tuple[object, type[np.generic]]] = {
            "output_ids": ([[self._ids]], np.int32),
            "sequence_length": ([[len(self._ids)]], np.int32),
            "cum_log_probs": ([[cum_log_prob]], np.float32),
            "output_log_probs": ([[self._token_log_probs]], np.float32),
        }
        return [
            pb_utils.Tensor(name, np.array(value, dtype=kind))
            for name, (value, kind) in values.items()
            if name in self._wanted
        ]


def _refuse(sender: Any, message: str, code: int) -> None:
    """End a request with an error."""
    sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(message, code)), flags=FINAL)
