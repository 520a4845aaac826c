"""Tensors of engines without a batch dimension. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensors import Array


def text(value: str) -> Array:
    """One string, `[1]`."""
    return np.array([value.encode()], dtype=np.object_)


def texts(values: Sequence[str]) -> Array:
    """Strings, `[n]`."""
    return np.array([value.encode() for value in values], dtype=np.object_)


def flag(*, on: bool) -> Array:
    """One truth value, `[1]`."""
    return np.array([on], dtype=np.bool_)


def number(value: float, dtype: Any) -> Array:
    """One number, `[1]`."""
    return np.array([value], dtype=dtype)


def words(tensor: Array | None) -> list[bytes]:
    """All strings of a tensor as bytes; none when it is absent."""
    return [] if tensor is None else [bytes(value) for value in tensor.ravel()]


def first_number(tensor: Array | None) -> float | None:
    """The first number of a tensor; None when there is none."""
    return None if tensor is None or tensor.size == 0 else float(tensor.ravel()[0])
