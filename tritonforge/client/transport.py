"""The seam between what a client says and how it travels.

A codec makes calls: pure values that hold the request and know how to read the answer. A transport carries any call of
its protocol. So all thinking is in code without input and output, shared by every client.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tritonforge.client.deadline import Deadline
from tritonforge.client.types import (
    Chunk,
    GenerateRequest,
    InferRequest,
    InferResult,
    ModelConfig,
    ModelInfo,
    ModelStatistics,
    ServerInfo,
)

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")
PieceT = TypeVar("PieceT")
ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)
PieceT_contra = TypeVar("PieceT_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[RequestT, AnswerT, ResultT]):
    """A request with one answer.

    Args:
        request: What is sent.
        decode: Reads the answer; raises the error that it stands for.
    """

    request: RequestT
    decode: Callable[[AnswerT], ResultT]


class StreamReader(Protocol[PieceT_contra, ResultT_co]):
    """Reads what arrives on one stream, in its order: messages over gRPC, pieces of the body over HTTP."""

    def feed(self, piece: PieceT_contra) -> Sequence[ResultT_co]:
        """The results that this piece completes. Raises the error that it stands for."""

    def end(self) -> Sequence[ResultT_co]:
        """What is left when the stream has ended. Raises when the end came too early."""


@dataclass(frozen=True, slots=True)
class StreamCall(Generic[RequestT, PieceT, ResultT]):
    """A request with any number of answers.

    Args:
        request: What is sent.
        open: Makes the reader of one stream.
    """

    request: RequestT
    open: Callable[[], StreamReader[PieceT, ResultT]]


class Transport(Protocol[RequestT, AnswerT, PieceT]):
    """Carries calls to one server. Every call ends by its deadline, with a result or with a `ClientError`."""

    def unary(self, call: Call[RequestT, AnswerT, ResultT], *, deadline: Deadline) -> ResultT:
        """Send a request and read its answer."""

    def stream(
        self, call: StreamCall[RequestT, PieceT, ResultT], *, deadline: Deadline
    ) -> Generator[ResultT, None, None]:
        """Send a request and give its results as they come. Closing the generator cancels the request on the server."""

    def close(self) -> None:
        """Close all connections."""


class Codec(Protocol[RequestT, AnswerT, PieceT]):
    """What can be asked of a server, in one protocol."""

    def live(self) -> Call[RequestT, AnswerT, bool]:
        """Is the server up?"""

    def ready(self) -> Call[RequestT, AnswerT, bool]:
        """Is the server ready for requests?"""

    def metadata(self) -> Call[RequestT, AnswerT, ServerInfo]:
        """Which server is it?"""

    def model_ready(self, model: str, version: str) -> Call[RequestT, AnswerT, bool]:
        """Is a model ready for requests?"""

    def models(self) -> Call[RequestT, AnswerT, list[ModelInfo]]:
        """The repository index."""

    def load(self, model: str, config: str | None) -> Call[RequestT, AnswerT, None]:
        """Load a model, or load it again."""

    def unload(self, model: str, *, dependents: bool) -> Call[RequestT, AnswerT, None]:
        """Unload a model."""

    def config(self, model: str, version: str) -> Call[RequestT, AnswerT, ModelConfig]:
        """A model's configuration."""

    def statistics(self, model: str, version: str) -> Call[RequestT, AnswerT, list[ModelStatistics]]:
        """Counters of one model, or of all with an empty name."""

    def infer(self, request: InferRequest) -> Call[RequestT, AnswerT, InferResult]:
        """Tensors in, tensors out."""

    def infer_stream(self, request: InferRequest) -> StreamCall[RequestT, PieceT, InferResult]:
        """Tensors in, any number of answers out."""

    def generate(self, request: GenerateRequest, config: ModelConfig) -> StreamCall[RequestT, PieceT, Chunk]:
        """Text in, text out, whole or in pieces."""
