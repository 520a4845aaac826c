"""What the gateway measures. The seam between serving requests and Triton's metrics."""

from __future__ import annotations

from typing import Protocol

from .answer import Usage

REJECTED = "rejected"
ERROR = "error"


class Meter(Protocol):
    """Takes measurements of one gateway."""

    def finished(self, version: int | None, outcome: str, usage: Usage | None = None) -> None:
        """A request is over.

        Args:
            version: Engine version; None when the request was rejected before one was chosen.
            outcome: stop, length, cancelled, rejected (the request was wrong) or error (the engine failed).
            usage: Its sizes, when it was answered.
        """

    def first_token(self, version: int, seconds: float) -> None:
        """Time from the arrival of a request to its first token."""

    def next_tokens(self, version: int, seconds: float) -> None:
        """Time per token since the previous tokens of the same request; once per arrival, not per token."""
