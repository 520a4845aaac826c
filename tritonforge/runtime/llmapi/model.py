"""The LLM API as a Triton model: the tensors of upstream's own, of release 0.19.

The only file of this runtime that knows Triton. As upstream's model, it sends the whole text so far with every streamed
response, and never the prompt. Unlike it, the model is always decoupled, a client that leaves frees the engine, and an
error is answered once and in words of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from ..tensors import RequestRejected, read_inputs
from .load import load_llm
from .requests import read_generation
from .session import Session
from .settings import FILE_NAME, read_settings

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    """One instance of one engine version."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the checkpoint; Triton reports the model as failed, with the reason, when that raises."""
        settings = read_settings(Path(args["model_repository"]) / args["model_version"] / FILE_NAME)
        pb_utils.Logger.log_info(f"{args['model_name']}: loading {dict(settings.llm_args)}")
        loaded = load_llm(settings.llm_args)
        self._session = Session(loaded.llm, loaded.sampling_params, check_period_s=settings.check_period_s)

    def execute(self, requests: Sequence[Any]) -> None:
        """Begin the requests. Answers come later, from the session's thread."""
        for request in requests:
            sender = request.get_response_sender()
            try:
                generation = read_generation(read_inputs(request))
            except RequestRejected as error:
                _refuse(sender, str(error), pb_utils.TritonError.INVALID_ARG)
            except Exception as error:  # noqa: BLE001 - whatever it is, no client may be left waiting for an answer
                _refuse(sender, f"{type(error).__name__}: {error}", pb_utils.TritonError.INTERNAL)
            else:
                self._session.submit(generation, Reply(sender, generation.returns))

    def finalize(self) -> None:
        """End the engine and its processes."""
        self._session.close()


class Reply:
    """The answer to one request.

    Args:
        sender: Triton's response sender.
        returns: Outputs to send beside the text.
    """

    def __init__(self, sender: Any, returns: Sequence[str]) -> None:
        self._sender = sender
        self._returns = returns
        self._is_open = True
        # Triton forgets a request with its last response: nobody may ask about it then.
        self._lock = threading.Lock()

    def send(self, completion: Any, *, final: bool) -> None:
        """Send the text so far, and what was asked for beside it."""
        tensors = [_text("text_output", completion.text)]
        for name in self._returns:
            value = getattr(completion, name, None)
            if name == "cumulative_logprob":
                number = np.nan if value is None else value
                tensors.append(pb_utils.Tensor(name, np.array([number], dtype=np.float32)))
            else:
                tensors.append(_text(name, str(value)))  # "None" while there is no reason, as upstream has it
        self._end(pb_utils.InferenceResponse(tensors), final=final)

    def fail(self, reason: str) -> None:
        """Send an error."""
        error = pb_utils.TritonError(reason, pb_utils.TritonError.INTERNAL)
        self._end(pb_utils.InferenceResponse(error=error), final=True)

    def cancel(self) -> None:
        """Say that the client itself has ended the request."""
        error = pb_utils.TritonError("the request was cancelled", pb_utils.TritonError.CANCELLED)
        self._end(pb_utils.InferenceResponse(error=error), final=True)

    def is_gone(self) -> bool:
        """Whether the client has cancelled or disconnected."""
        with self._lock:
            return self._is_open and bool(self._sender.is_cancelled())

    def _end(self, response: Any, *, final: bool) -> None:
        with self._lock:
            if self._is_open:
                self._is_open = not final
                self._sender.send(response, flags=FINAL if final else 0)


def _text(name: str, value: str) -> Any:
    return pb_utils.Tensor(name, np.array([value.encode()], dtype=np.object_))


def _refuse(sender: Any, message: str, code: int) -> None:
    """End a request with an error."""
    sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(message, code)), flags=FINAL)
