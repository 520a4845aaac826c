"""Why a request did not succeed."""

from __future__ import annotations

from tritonforge.errors.base import TritonforgeError


class ClientError(TritonforgeError):
    """A request to a server did not succeed."""

    exit_code = 7


class TransportError(ClientError):
    """The request or its answer did not get through. `server` is the address that was asked."""

    def __init__(self, message: str, *, server: str, hint: str | None = None) -> None:
        super().__init__(f"{server}: {message}", hint=hint)
        self.server = server


class ConnectFailed(TransportError):
    """No connection to the server."""


class TimedOut(TransportError):
    """The deadline of the call passed."""

    def __init__(self, *, server: str, after_s: float) -> None:
        super().__init__(
            f"no answer within {after_s:g} s",
            server=server,
            hint="give it more time: timeout_s, or --timeout of the command",
        )
        self.after_s = after_s


class Cancelled(TransportError):
    """The call was cancelled, by us or by the server."""


class Rejected(ClientError):
    """The server understood the request and refused it.

    Args:
        detail: The server's own words.
        server: The address that was asked.
        status: The protocol's status, for example ``INVALID_ARGUMENT`` or ``400``.
    """

    def __init__(self, detail: str, *, server: str, status: str, hint: str | None = None) -> None:
        super().__init__(f"{server}: {detail}", hint=hint)
        self.detail = detail
        self.server = server
        self.status = status


class InvalidRequest(Rejected):
    """A field of the request is wrong."""


class ModelNotFound(Rejected):
    """The server has no model of that name or version."""


class ModelNotReady(Rejected):
    """The server has the model, but it is not loaded."""


class NoAnswer(ClientError):
    """A text model's answer ended without any text, not even an empty one.

    Args:
        model: The model that was asked.
        server: The address that was asked.
    """

    def __init__(self, model: str, *, server: str) -> None:
        super().__init__(
            f"{server}: model {model!r} answered without a text: no response has the output text_output",
            hint="give max_tokens (of the command: --max-tokens): models made like NVIDIA's ensemble answer like this "
            "when they lack an input that they need; else look at the server's log",
        )
        self.model = model
        self.server = server


class StreamBroken(ClientError):
    """A stream ended with an error after some tokens had arrived.

    Args:
        reason: What ended it.
        server: The address that was asked.
        chunks_received: Responses that had arrived before.
    """

    def __init__(self, reason: str, *, server: str, chunks_received: int) -> None:
        super().__init__(f"{server}: stream broken after {chunks_received} responses: {reason}")
        self.server = server
        self.chunks_received = chunks_received
