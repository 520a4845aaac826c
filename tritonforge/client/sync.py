"""The blocking client: each method makes a call and has it carried."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar, Unpack

from tritonforge.client.address import parse_address
from tritonforge.client.advice import explain
from tritonforge.client.connect import connect
from tritonforge.client.deadline import Deadline
from tritonforge.client.follow import follow
from tritonforge.client.readiness import ReadyWait
from tritonforge.client.text import question
from tritonforge.client.transport import Call, StreamCall
from tritonforge.client.types import (
    Chunk,
    Completion,
    GenerateOptions,
    GenerateRequest,
    InferRequest,
    InferResult,
    Message,
    ModelConfig,
    ModelInfo,
    ModelStatistics,
    ServerInfo,
    Tensor,
)
from tritonforge.errors import ClientError, ModelNotFound, ModelNotReady, Rejected, TransportError

DEFAULT_URL = "localhost:8001"
DEFAULT_TIMEOUT_S = 60.0
ADVICE_TIMEOUT_S = 2.0

ResultT = TypeVar("ResultT")


class Client:
    """A client of one Triton (or other KServe v2) server.

    Every call ends by its deadline with a result or with a `ClientError`. A client may be used by several threads.

    Args:
        url: ``host:port`` or ``grpc://host:port`` for gRPC, ``http://host:port`` or ``https://host:port`` for HTTP.
        timeout_s: Deadline of a call that is not given one of its own.

    Example:
        >>> with Client("localhost:8001") as client:
        ...     print(client.generate("smollm2", "The capital of France is", max_tokens=8).text)
        ...     for chunk in client.stream("smollm2", messages=[{"role": "user", "content": "Hello"}]):
        ...         print(chunk.text, end="", flush=True)
    """

    def __init__(self, url: str = DEFAULT_URL, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self.url = url
        self.timeout_s = timeout_s
        self._codec, self._transport = connect(parse_address(url))
        self._configs: dict[str, ModelConfig] = {}

    # ---- text ----------------------------------------------------------------------------------------------

    def generate(
        self,
        model: str,
        prompt: str | None = None,
        *,
        messages: Sequence[Message] | None = None,
        timeout_s: float | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Completion:
        """Ask a text model and wait for its whole answer.

        Args:
            model: The model's name.
            prompt: The text to continue; or give `messages`.
            messages: A chat, as mappings with ``role`` and ``content``; the model's chat template renders it.
            timeout_s: Seconds from this call to the end of the answer.
            **options: See `GenerateOptions`.
        """
        request = GenerateRequest(model, question(prompt, messages, options), stream=False)
        return follow(self._ask(request, timeout_s))

    def stream(
        self,
        model: str,
        prompt: str | None = None,
        *,
        messages: Sequence[Message] | None = None,
        timeout_s: float | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generator[Chunk, None, None]:
        """Ask a text model and get its answer as it is made.

        Leaving the loop early, or closing the generator, cancels the request on the server.

        Args:
            model: The model's name.
            prompt: The text to continue; or give `messages`.
            messages: A chat, as mappings with ``role`` and ``content``; the model's chat template renders it.
            timeout_s: Seconds from this call to the end of the answer.
            **options: See `GenerateOptions`.
        """
        return self._ask(GenerateRequest(model, question(prompt, messages, options), stream=True), timeout_s)

    # ---- tensors -------------------------------------------------------------------------------------------

    def infer(
        self,
        model: str,
        inputs: Mapping[str, Tensor],
        *,
        version: str = "",
        request_id: str = "",
        outputs: Sequence[str] | None = None,
        timeout_s: float | None = None,
    ) -> InferResult:
        """Arrays in, arrays out, for any model that answers once. Arguments as in `InferRequest`."""
        wanted = None if outputs is None else tuple(outputs)
        return self._unary(self._codec.infer(InferRequest(model, inputs, version, request_id, wanted)), timeout_s)

    def infer_stream(
        self,
        model: str,
        inputs: Mapping[str, Tensor],
        *,
        version: str = "",
        request_id: str = "",
        outputs: Sequence[str] | None = None,
        timeout_s: float | None = None,
    ) -> Generator[InferResult, None, None]:
        """Arrays in, any number of answers out, for decoupled models; over gRPC only. Leaving early cancels."""
        wanted = None if outputs is None else tuple(outputs)
        call = self._codec.infer_stream(InferRequest(model, inputs, version, request_id, wanted))
        return self._stream(call, self._deadline(timeout_s))

    # ---- server and models ---------------------------------------------------------------------------------

    def live(self, *, timeout_s: float | None = None) -> bool:
        """Whether the server is up. False when there is no answer."""
        return self._yes(self._codec.live(), timeout_s)

    def ready(self, *, timeout_s: float | None = None) -> bool:
        """Whether the server and all its models are ready. False when there is no answer."""
        return self._yes(self._codec.ready(), timeout_s)

    def metadata(self, *, timeout_s: float | None = None) -> ServerInfo:
        """The server's name, version and protocol extensions."""
        return self._unary(self._codec.metadata(), timeout_s)

    def model_ready(self, model: str, *, version: str = "", timeout_s: float | None = None) -> bool:
        """Whether a model, or one version of it, is ready. False when there is no answer or no such model."""
        return self._yes(self._codec.model_ready(model, version), timeout_s)

    def models(self, *, timeout_s: float | None = None) -> list[ModelInfo]:
        """The versions that the server knows of, with their states and reasons."""
        return self._unary(self._codec.models(), timeout_s)

    def config(self, model: str, *, version: str = "", timeout_s: float | None = None) -> ModelConfig:
        """What a loaded model takes and gives."""
        return self._unary(self._codec.config(model, version), timeout_s)

    def statistics(
        self, model: str = "", *, version: str = "", timeout_s: float | None = None
    ) -> list[ModelStatistics]:
        """Counters of a model's versions, or of all loaded models."""
        return self._unary(self._codec.statistics(model, version), timeout_s)

    def load(self, model: str, *, config: str | None = None, timeout_s: float | None = None) -> None:
        """Load a model, or load it again after its folder has changed.

        Args:
            model: The model's name.
            config: A configuration as JSON, instead of the config.pbtxt in its folder. It stays in force, also when the
                model is loaded again without one, until the model's files change or it is unloaded (seen on 2.51).
            timeout_s: Deadline in seconds; the server goes on loading when it passes.
        """
        self._configs.pop(model, None)
        self._unary(self._codec.load(model, config), timeout_s)

    def unload(self, model: str, *, unload_dependents: bool = False, timeout_s: float | None = None) -> None:
        """Unload a model. Requests under way still finish.

        Args:
            model: The model's name.
            unload_dependents: Also unload the models that an ensemble consists of.
            timeout_s: Deadline in seconds.
        """
        self._configs.pop(model, None)
        self._unary(self._codec.unload(model, dependents=unload_dependents), timeout_s)

    def wait_ready(self, model: str, *, version: str = "", timeout_s: float | None = None) -> None:
        """Wait until a model is ready. The server may still be starting.

        Raises:
            NotReady: `timeout_s` has passed.
            ModelNotReady: It could not be loaded, with the server's reason.
        """
        wait = ReadyWait(model, version, server=self.url, timeout_s=self._timeout_s(timeout_s))
        while not self.model_ready(model, version=version, timeout_s=wait.remaining_s()):
            with contextlib.suppress(TransportError):
                wait.look_at(self.models(timeout_s=wait.remaining_s()))
            time.sleep(wait.next_delay_s())

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- carrying ------------------------------------------------------------------------------------------

    def _ask(self, request: GenerateRequest, timeout_s: float | None) -> Generator[Chunk, None, None]:
        deadline = self._deadline(timeout_s)
        if request.model not in self._configs:
            self._configs[request.model] = self._carry(self._codec.config(request.model, ""), deadline)
        return self._stream(self._codec.generate(request, self._configs[request.model]), deadline)

    def _unary(self, call: Call[Any, Any, ResultT], timeout_s: float | None) -> ResultT:
        return self._carry(call, self._deadline(timeout_s))

    def _carry(self, call: Call[Any, Any, ResultT], deadline: Deadline) -> ResultT:
        with self._explained(deadline):
            return self._transport.unary(call, deadline=deadline)

    def _stream(self, call: StreamCall[Any, Any, ResultT], deadline: Deadline) -> Generator[ResultT, None, None]:
        with self._explained(deadline):
            yield from self._transport.stream(call, deadline=deadline)

    def _yes(self, call: Call[Any, Any, bool], timeout_s: float | None) -> bool:
        try:
            return self._transport.unary(call, deadline=self._deadline(timeout_s))
        except (TransportError, Rejected):
            return False

    def _deadline(self, timeout_s: float | None) -> Deadline:
        return Deadline.after(self._timeout_s(timeout_s))

    def _timeout_s(self, timeout_s: float | None) -> float:
        return self.timeout_s if timeout_s is None else timeout_s

    @contextlib.contextmanager
    def _explained(self, deadline: Deadline) -> Iterator[None]:
        """Adds to a refusal what the server's index knows about it: the nearest name, or why a model is not ready."""
        try:
            yield
        except (ModelNotFound, ModelNotReady) as error:
            advice_s = min(ADVICE_TIMEOUT_S, deadline.remaining_s())
            with contextlib.suppress(ClientError):
                index = self._transport.unary(self._codec.models(), deadline=Deadline.after(advice_s))
                explain(error, index)
            raise
