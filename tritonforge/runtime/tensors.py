"""Reading the input tensors of one request: numpy arrays in, checked Python values out. Pure.

Shared by the gateway and the embedded engine. A value of a request is one element, however the client shaped it: `[]`,
`[1]` and `[1, 1]` (with the batch dimension) all mean the same. A request that carries a batch of several is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class RequestRejected(ValueError):
    """The request cannot be served as it was asked; the message names the field, its value and what was expected."""


class _Tensor(Protocol):
    def name(self) -> str: ...

    def as_numpy(self) -> Array: ...


class _Request(Protocol):
    def inputs(self) -> Iterable[_Tensor]: ...


def read_inputs(request: _Request) -> Inputs:
    """The input tensors of a Triton request (`pb_utils.InferenceRequest`)."""
    return Inputs({tensor.name(): tensor.as_numpy() for tensor in request.inputs()})


@dataclass(frozen=True, slots=True)
class Inputs:
    """The input tensors of one request by name.

    Every reader returns None for an input that is absent or has no elements.

    Args:
        arrays: Arrays of any shape; strings as object arrays of bytes, as Triton hands them over.
    """

    arrays: Mapping[str, Array]

    def integer(self, name: str, *, minimum: int | None = None, maximum: int | None = None) -> int | None:
        """One integer within `minimum`..`maximum` (both included). Raises RequestRejected."""
        value = self._single(name, kinds="iu", expected="an integer")
        if value is None:
            return None
        number = int(value)
        if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
            raise RequestRejected(f"{name} is {number}; expected {_range('an integer', minimum, maximum)}")
        return number

    def number(self, name: str, *, minimum: float | None = None, maximum: float | None = None) -> float | None:
        """One finite number within `minimum`..`maximum` (both included). Raises RequestRejected."""
        value = self._single(name, kinds="fiu", expected="a number")
        if value is None:
            return None
        number = float(value)
        outside = (minimum is not None and number < minimum) or (maximum is not None and number > maximum)
        if outside or not math.isfinite(number):
            raise RequestRejected(f"{name} is {number:g}; expected {_range('a finite number', minimum, maximum)}")
        return number

    def flag(self, name: str) -> bool | None:
        """One boolean. Raises RequestRejected."""
        value = self._single(name, kinds="b", expected="true or false")
        return None if value is None else bool(value)

    def text(self, name: str) -> str | None:
        """One string; may be empty. Raises RequestRejected when it is not UTF-8."""
        value = self._single(name, kinds="OSU", expected="one string")
        return None if value is None else _decode(name, value)

    def texts(self, name: str) -> tuple[str, ...]:
        """All strings of an input, `[n]` or `[1, n]`; empty when it is absent. Raises RequestRejected."""
        array = self._array(name, kinds="OSU", expected="strings")
        return () if array is None else tuple(_decode(name, value) for value in array.ravel())

    def integers(self, name: str) -> tuple[int, ...] | None:
        """All integers of an input, `[n]` or `[1, n]`. Raises RequestRejected."""
        array = self._array(name, kinds="iu", expected="integers")
        return None if array is None else tuple(array.ravel().tolist())

    def _single(self, name: str, *, kinds: str, expected: str) -> Any:
        array = self._array(name, kinds=kinds, expected=expected)
        if array is None:
            return None
        if array.size != 1:
            raise RequestRejected(f"{name} has shape {list(array.shape)}; expected {expected}, one element")
        return array.ravel()[0]

    def _array(self, name: str, *, kinds: str, expected: str) -> Array | None:
        array = self.arrays.get(name)
        if array is None or array.size == 0:
            return None
        if array.dtype.kind not in kinds:
            raise RequestRejected(f"{name} has type {array.dtype}; expected {expected}")
        if array.ndim > 1 and array.shape[0] > 1:
            raise RequestRejected(
                f"{name} has shape {list(array.shape)}, a batch of {array.shape[0]}; expected one request at a time"
            )
        return array


def text_tensor(texts: Iterable[str]) -> Array:
    """Strings as an object array of UTF-8 bytes of shape `[1, n]`."""
    return np.array([[text.encode() for text in texts]], dtype=np.object_)


def _decode(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        raise RequestRejected(f"{name} holds a {type(value).__name__}; expected a string")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise RequestRejected(
            f"{name} is not valid UTF-8: byte 0x{value[error.start]:02x} at position {error.start}"
        ) from error


def _range(what: str, minimum: float | None, maximum: float | None) -> str:
    if minimum is not None and maximum is not None:
        return f"{what} from {_plain(minimum)} to {_plain(maximum)}"
    if minimum is not None:
        return f"{what} of at least {_plain(minimum)}"
    return f"{what} of at most {_plain(maximum)}" if maximum is not None else what


def _plain(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"
