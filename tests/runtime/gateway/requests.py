"""Requests as the gateway gets them: input tensors with Triton's types and a batch dimension."""

from __future__ import annotations

import numpy as np

from tritonforge.runtime.tensors import Inputs

_TYPES = {
    "max_tokens": np.int32,
    "stream": np.bool_,
    "temperature": np.float32,
    "top_k": np.int32,
    "top_p": np.float32,
    "repetition_penalty": np.float32,
    "presence_penalty": np.float32,
    "frequency_penalty": np.float32,
    "random_seed": np.uint64,
    "min_length": np.int32,
    "version": np.int32,
    "return_log_probs": np.bool_,
    "beam_width": np.int32,
    "end_id": np.int32,
    "pad_id": np.int32,
}


def inputs_of(**fields: object) -> Inputs:
    """Input tensors `[1, n]`; strings are encoded, arrays are taken as they are."""
    return Inputs({name: _array(name, value) for name, value in fields.items()})


def _array(name: str, value: object) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    values = value if isinstance(value, list) else [value]
    if name in _TYPES:
        return np.array([values], dtype=_TYPES[name])
    return np.array([[v if isinstance(v, bytes) else str(v).encode() for v in values]], dtype=object)
