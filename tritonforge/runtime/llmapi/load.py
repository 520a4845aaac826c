"""Loads the LLM API. Owns `tensorrt_llm`, which takes seconds to import and the GPUs with it.

Where each release keeps what is needed was read in upstream's model: v0.19.0 takes the PyTorch path from
`tensorrt_llm._torch.llm`, later versions take `tensorrt_llm.LLM`, which is the PyTorch path from 1.0 on.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_MPI_SIZE = "OMPI_COMM_WORLD_SIZE"
_LIBRARY = "tensorrt_llm"
_PYTORCH = "pytorch"


@dataclass(frozen=True, slots=True)
class LoadedLlm:
    """What a session needs of the library.

    Args:
        llm: The LLM.
        sampling_params: Its class of sampling parameters.
    """

    llm: Any
    sampling_params: Callable[..., Any]


def load_llm(args: Mapping[str, Any]) -> LoadedLlm:
    """Load the checkpoint onto the GPUs.

    Args:
        args: Arguments of the LLM API; nested ones as mappings.

    Raises:
        RuntimeError: Triton was started in a way that the LLM API's own processes cannot live with.
    """
    size = os.environ.get(_MPI_SIZE, "1")
    if size.isdigit() and int(size) > 1:
        raise RuntimeError(
            f"{_MPI_SIZE} is {size}: Triton was started by mpirun; start one tritonserver without it, the LLM API "
            f"starts a process per GPU by itself"
        )
    library = importlib.import_module(_LIBRARY)
    make = _llm_class(library, args)
    return LoadedLlm(make(**{**_converted(args), "trust_remote_code": False}), library.SamplingParams)


def _llm_class(library: Any, args: Mapping[str, Any]) -> Callable[..., Any]:
    release = str(getattr(library, "__version__", ""))
    if args.get("backend") == _PYTORCH and release.startswith("0."):
        with contextlib.suppress(ImportError):
            return _callable(importlib.import_module(f"{_LIBRARY}._torch.llm").LLM)
    return _callable(library.LLM)


def _converted(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Nested mappings as the classes that stand for them, by upstream's own function where it is there."""
    try:
        convert = importlib.import_module(f"{_LIBRARY}.llmapi.llm_utils").update_llm_args_with_extra_dict
    except (ImportError, AttributeError):
        return args
    return dict(convert({}, dict(args)))


def _callable(value: Any) -> Callable[..., Any]:
    """The same, with a type: the library is not there when types are checked."""
    made: Callable[..., Any] = value
    return made
