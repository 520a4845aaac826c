"""What a caller passes to a client and gets back. Pure values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np
import numpy.typing as npt

Tensor = npt.NDArray[np.generic]
Message = Mapping[str, str]
NANOSECONDS_PER_S = 1e9  # servers count times in nanoseconds


class GenerateOptions(TypedDict, total=False):
    """Optional fields of a generate request; what is left out is for the server to decide.

    A field that the model has no input for is refused before anything is sent.
    """

    max_tokens: int
    """Most new tokens, at least 1."""
    min_length: int
    """Fewest new tokens."""
    temperature: float
    """0 picks the likeliest token; higher is more random."""
    top_k: int
    """Sample from so many likeliest tokens; 1 is greedy, 0 is all."""
    top_p: float
    """Sample from the likeliest tokens that together have this probability, 0 to 1."""
    repetition_penalty: float
    """Above 1 makes tokens that have occurred less likely."""
    presence_penalty: float
    """Taken off the logit of each token that has occurred."""
    frequency_penalty: float
    """Taken off the logit of a token for each time it has occurred."""
    random_seed: int
    """Same seed, same answer."""
    stop_words: Sequence[str]
    """Texts that end the answer; they are not part of it."""
    bad_words: Sequence[str]
    """Texts that must not occur."""
    version: int
    """Engine version that has to answer; left out, the model's traffic decides."""
    sticky_key: str
    """Requests with the same key get the same version."""
    return_log_probs: bool
    """Also give the log probabilities of the new tokens."""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One question to a text model.

    Args:
        model: The model's name.
        fields: Values by input name, without those that were left out.
        stream: Whether the answer comes in pieces.
    """

    model: str
    fields: Mapping[str, object]
    stream: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a streamed answer.

    Args:
        text: The new text; may be empty in the last piece.
        index: Position in the stream, from 0.
        finish_reason: ``stop``, ``length`` or ``cancelled`` in the last piece, otherwise None.
        engine_version: Engine version that answers, when the model says so.
        prompt_tokens: Tokens of the prompt, when the model says so (usually in the last piece).
        completion_tokens: Tokens of the answer, when the model says so (usually in the last piece).
        cum_log_probs: Sum of the log probabilities of the new tokens, on request.
        output_log_probs: Log probability of each new token of this piece, on request.
    """

    text: str
    index: int
    finish_reason: str | None = None
    engine_version: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cum_log_probs: float | None = None
    output_log_probs: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer.

    Args:
        text: The answer, without the prompt.
        finish_reason: ``stop``, ``length`` or ``cancelled``, when the model says so.
        engine_version: Engine version that answered, when the model says so.
        prompt_tokens: Tokens of the prompt, when the model says so.
        completion_tokens: Tokens of the answer, when the model says so.
        ttft_ms: Milliseconds from sending to the first text, measured here. An answer that is not streamed arrives at
            once, so this then equals `total_ms`.
        total_ms: Milliseconds from sending to the end, measured here.
        cum_log_probs: Sum of the log probabilities of the new tokens, on request.
        output_log_probs: Log probability of each new token, on request.
    """

    text: str
    finish_reason: str | None
    engine_version: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    ttft_ms: float
    total_ms: float
    cum_log_probs: float | None = None
    output_log_probs: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class InferRequest:
    """Tensors for any model.

    Args:
        model: The model's name.
        inputs: Arrays by input name. Text is an array of str or bytes (BYTES), bfloat16 is `ml_dtypes.bfloat16`.
        version: Triton's numeric model version; empty lets the server choose.
        request_id: Comes back with the answer.
        outputs: Names of the outputs wanted; None is all.
    """

    model: str
    inputs: Mapping[str, Tensor]
    version: str = ""
    request_id: str = ""
    outputs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class InferResult:
    """The tensors that a model answered with.

    Args:
        model: The model's name.
        version: Numeric version that answered.
        request_id: The request's id.
        outputs: Arrays by output name, read-only; BYTES are arrays of bytes objects.
        parameters: Parameters of the response.
    """

    model: str
    version: str
    request_id: str
    outputs: Mapping[str, Tensor]
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tensor:
        return self.outputs[name]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One version of a model in the server's repository index.

    Args:
        name: The model's name.
        version: Numeric version; empty when the server has not loaded any.
        state: ``READY``, ``LOADING``, ``UNLOADING``, ``UNAVAILABLE``, or empty when never loaded.
        reason: Why it is not ready, in the server's words.
    """

    name: str
    version: str
    state: str
    reason: str

    @property
    def failed(self) -> bool:
        """Whether it was wanted and could not be loaded."""
        return self.state == "UNAVAILABLE" and self.reason not in ("", "unloaded")


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor in a model's configuration.

    Args:
        name: Its name.
        datatype: KServe spelling, for example ``FP32`` or ``BYTES``.
        dims: Its shape without the batch dimension; -1 is any.
        optional: Of an input: a request may leave it out.
    """

    name: str
    datatype: str
    dims: tuple[int, ...]
    optional: bool = True


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What a model takes and gives.

    Args:
        name: The model's name.
        backend: Triton backend.
        max_batch_size: 0 when the model's tensors have no batch dimension.
        decoupled: Whether a request may get any number of responses.
        inputs: Input tensors.
        outputs: Output tensors.
        parameters: The model's own parameters.
    """

    name: str
    backend: str
    max_batch_size: int
    decoupled: bool
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ModelStatistics:
    """Counters of one model version since it was loaded.

    Args:
        name: The model's name.
        version: Numeric version.
        inference_count: Inferences; a request of batch n counts n.
        execution_count: Executions of the backend.
        success_count: Requests that succeeded.
        fail_count: Requests that failed.
        success_s: Seconds that all successful requests took together.
        queue_s: Seconds that all requests waited together.
        compute_s: Seconds that all requests were computed together, with input and output.
        last_inference_ms: Time of the last request, milliseconds since 1970; 0 when there was none.
    """

    name: str
    version: str
    inference_count: int
    execution_count: int
    success_count: int
    fail_count: int
    success_s: float
    queue_s: float
    compute_s: float
    last_inference_ms: int


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says about itself.

    Args:
        name: For example ``triton``.
        version: Its version.
        extensions: Protocol extensions that it has.
    """

    name: str
    version: str
    extensions: tuple[str, ...]
