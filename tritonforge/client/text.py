"""The text level: fields of a question checked against the model, answers put together. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tritonforge.client.tensors import BYTES, DTYPES
from tritonforge.client.types import (
    Chunk,
    Completion,
    GenerateOptions,
    GenerateRequest,
    Message,
    ModelConfig,
    TensorInfo,
)
from tritonforge.errors import InvalidRequest, NoAnswer, UsageBug, did_you_mean

LISTS = ("stop_words", "bad_words")
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class TextField:
    """A field of a question, checked.

    Args:
        name: Input name.
        datatype: KServe datatype that the model declares.
        value: A plain value, or a list of them.
    """

    name: str
    datatype: str
    value: object

    @property
    def values(self) -> list[object]:
        """The elements of its tensor."""
        return self.value if isinstance(self.value, list) else [self.value]


def question(
    prompt: str | None, messages: Sequence[Message] | None, options: Mapping[str, object]
) -> Mapping[str, object]:
    """The fields of a question: a prompt or a chat, and what else was given.

    Raises:
        UsageBug: Neither or both of prompt and messages were given.
    """
    if (prompt is None) == (messages is None):
        raise UsageBug("give either a prompt or messages, not both")
    if messages is not None:
        fields: dict[str, object] = {"messages": json.dumps([dict(message) for message in messages])}
    else:
        fields = {"text_input": prompt}
    given = {name: value for name, value in options.items() if value is not None}
    # An empty list of stop words says the same as none; a tensor without elements is refused by some servers.
    return fields | {name: value for name, value in given.items() if not (name in LISTS and len(_sized(value)) == 0)}


def text_fields(request: GenerateRequest, config: ModelConfig, *, server: str) -> list[TextField]:
    """The fields of a question with the datatypes that the model declares, which differ between releases.

    Raises:
        InvalidRequest: The model has no such input, or a value does not fit its datatype. Checked here because over
            HTTP Triton takes a field that the model does not have for a parameter, and answers as if it were not given.
            Or an input that it needs was not given: of an ensemble, Triton counts inputs only, and where an optional
            one makes up the number, no step runs and the answer is empty (seen on 2.51).
    """
    known = {tensor.name: tensor for tensor in config.inputs}
    fields = dict(request.fields)
    if "stream" in known:
        fields["stream"] = request.stream
    checked = [_field(name, value, known, request.model, server) for name, value in fields.items()]
    lacking = [name for name, tensor in known.items() if not tensor.optional and name not in fields]
    if lacking:
        problem = f"model {request.model!r} needs {', '.join(lacking)}, which the request does not give"
        raise InvalidRequest(problem, server=server, status="INVALID_ARGUMENT", hint=_giving(lacking))
    return checked


class TextPieces:
    """Makes chunks of the responses to one question, and tells an empty answer from none.

    Args:
        model: The model's name.
        server: The server's address, for error messages.
    """

    def __init__(self, model: str, *, server: str) -> None:
        self._model = model
        self._server = server
        self._has_text = False

    def read(self, outputs: Mapping[str, Sequence[object]], *, index: int) -> Chunk:
        """One piece of the answer from its outputs, each as a flat list of elements."""
        self._has_text = self._has_text or "text_output" in outputs
        return chunk_of(outputs, index=index)

    def check(self) -> None:
        """The answer has ended. Raises NoAnswer when no piece had a text, not even an empty one."""
        if not self._has_text:
            raise NoAnswer(self._model, server=self._server)


def chunk_of(outputs: Mapping[str, Sequence[object]], *, index: int) -> Chunk:
    """One piece of an answer from its outputs, each as a flat list of elements."""
    sums = _numbers(outputs.get("cum_log_probs"))
    log_probs = _numbers(outputs.get("output_log_probs"))
    return Chunk(
        text="".join(_text(part) for part in outputs.get("text_output", ())),
        index=index,
        finish_reason=_text(_first(outputs, "finish_reason")) or None,
        engine_version=_integer(_first(outputs, "engine_version")),
        prompt_tokens=_integer(_first(outputs, "prompt_tokens")),
        completion_tokens=_integer(_first(outputs, "completion_tokens")),
        cum_log_probs=sums[0] if sums else None,
        output_log_probs=log_probs,
    )


def completion(arrivals: Sequence[tuple[Chunk, float]], *, start_s: float, end_s: float) -> Completion:
    """A whole answer from its pieces, each with the time at which it came.

    Args:
        arrivals: Pieces and times in seconds, at least one piece.
        start_s: When the request was sent.
        end_s: When the answer had ended.
    """
    chunks = [chunk for chunk, _ in arrivals]
    first_s = next((at_s for chunk, at_s in arrivals if chunk.text), end_s)
    log_probs = [chunk.output_log_probs for chunk in chunks if chunk.output_log_probs is not None]
    return Completion(
        text="".join(chunk.text for chunk in chunks),
        finish_reason=_last(chunk.finish_reason for chunk in chunks),
        engine_version=_last(chunk.engine_version for chunk in chunks),
        prompt_tokens=_last(chunk.prompt_tokens for chunk in chunks),
        completion_tokens=_last(chunk.completion_tokens for chunk in chunks),
        ttft_ms=(first_s - start_s) * 1000,
        total_ms=(end_s - start_s) * 1000,
        cum_log_probs=_last(chunk.cum_log_probs for chunk in chunks),
        output_log_probs=tuple(value for part in log_probs for value in part) if log_probs else None,
    )


def _giving(names: Sequence[str]) -> str:
    options = [f"--{name.replace('_', '-')}" for name in names if name in GenerateOptions.__annotations__]
    spelt = f" (of the command: {', '.join(options)})" if options else ""
    return f"give {', '.join(names)}{spelt}; models made like NVIDIA's ensemble need max_tokens"


def _field(name: str, value: object, known: Mapping[str, TensorInfo], model: str, server: str) -> TextField:
    def refuse(problem: str, hint: str | None = None) -> InvalidRequest:
        return InvalidRequest(problem, server=server, status="INVALID_ARGUMENT", hint=hint)

    if name not in known:
        names = ", ".join(sorted(known))
        hint = did_you_mean(name, list(known)) or f"its inputs: {names}"
        raise refuse(f"model {model!r} takes no {name}", hint)
    datatype = known[name].datatype
    if name in LISTS and (isinstance(value, str) or not isinstance(value, Sequence)):
        raise refuse(f"{name} is {value!r}; expected a list of texts")
    checked = []
    for element in _sized(value) if name in LISTS else [value]:
        plain = _plain(element, datatype)
        if plain is None:
            raise refuse(f"{name} is {element!r}; expected {_expected(datatype)}")
        checked.append(plain)
    return TextField(name, datatype, checked if name in LISTS else checked[0])


def _plain(value: object, datatype: str) -> object | None:
    """The value as JSON and the datatype want it, or None when it does not fit."""
    if isinstance(value, np.generic):
        value = value.item()
    if datatype == BYTES:
        return value if isinstance(value, str) and _encodable(value) else None
    if datatype == "BOOL":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or datatype not in DTYPES:
        return None
    if datatype.startswith(("FP", "BF")):
        return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
    lowest, highest = _bounds(datatype)
    return value if isinstance(value, int) and lowest <= value <= highest else None


def _expected(datatype: str) -> str:
    if datatype == BYTES:
        return "a text"
    if datatype == "BOOL":
        return "true or false"
    if datatype.startswith(("FP", "BF")):
        return "a finite number"
    lowest, highest = _bounds(datatype)
    return f"a whole number from {lowest} to {highest}"


def _bounds(datatype: str) -> tuple[int, int]:
    """The range of INT8 to UINT64, read from the name."""
    bits = int(datatype.lstrip("UINT"))
    return (0, 2**bits - 1) if datatype.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _sized(value: object) -> Sequence[object]:
    return value if isinstance(value, Sequence) else (value,)


def _first(outputs: Mapping[str, Sequence[object]], name: str) -> object | None:
    values = outputs.get(name)
    return values[0] if values else None


def _last(values: Iterable[ValueT | None]) -> ValueT | None:
    """The last one that is there."""
    found = None
    for value in values:
        found = value if value is not None else found
    return found


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return "" if value is None else str(value)


def _integer(value: object) -> int | None:
    return int(value) if isinstance(value, (int, np.integer)) else None


def _numbers(values: Sequence[object] | None) -> tuple[float, ...] | None:
    if not values:
        return None
    return tuple(float(value) for value in values if isinstance(value, (int, float)))
