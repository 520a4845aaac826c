"""What preprocessing and postprocessing share as models of Triton's Python backend: files, answers, errors."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import triton_python_backend_utils as pb_utils

from ..gateway.errors import VersionUnusable
from ..gateway.serving import ServedVersion, load_versions
from ..tensors import Array, RequestRejected, read_inputs

_SERVED_FOLDER = "served"
_TRUE, _FALSE = {"true", "1", "t", "y", "yes"}, {"false", "0", "f", "n", "no"}
_log = logging.getLogger(__name__)

Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]
Check = Callable[[Mapping[str, Any]], None]


def load_version(args: Mapping[str, str]) -> ServedVersion:
    """The version that a model belongs to: the folder carries its number.

    Args:
        args: What Triton hands to `initialize`.

    Raises:
        VersionUnusable: Its files cannot be used; Triton shows why.
    """
    folder = Path(args["model_repository"]) / args["model_version"] / _SERVED_FOLDER
    versions = load_versions(folder)
    if versions.broken or len(versions.served) != 1:
        reasons = "; ".join(versions.broken.values()) or f"{folder} holds {len(versions.served)} versions; expected one"
        raise VersionUnusable(reasons)
    return next(iter(versions.served.values()))


def flag_parameter(args: Mapping[str, str], name: str) -> bool:
    """A parameter of the model that is true or false; true when it is not given, as upstream has it.

    Raises:
        VersionUnusable: It is neither.
    """
    text = json.loads(args["model_config"]).get("parameters", {}).get(name, {}).get("string_value", "true").lower()
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise VersionUnusable(f"parameter {name} is {text!r}; expected true or false")


def list_parameter(args: Mapping[str, str], name: str) -> tuple[str, ...]:
    """A parameter of the model that is a list with commas; empty when it is not given."""
    text = json.loads(args["model_config"]).get("parameters", {}).get(name, {}).get("string_value", "")
    return tuple(item for item in text.split(",") if item)


def output_names(args: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the outputs that the model's config declares."""
    return tuple(tensor["name"] for tensor in json.loads(args["model_config"]).get("output", ()))


def answer_each(requests: Sequence[Any], run: Run, outputs: Sequence[str], *, check: Check | None = None) -> list[Any]:
    """One response per request: what `run` makes of its inputs, or its error.

    Args:
        requests: Triton's requests.
        run: Raises RequestRejected for inputs that are wrong.
        outputs: Names of the outputs that the model has.
        check: Looks at the parameters of each request first; raises RequestRejected for one that is wrong.
    """
    return [_answer(request, run, outputs, check) for request in requests]


def _answer(request: Any, run: Run, outputs: Sequence[str], check: Check | None) -> Any:
    try:
        if check is not None:
            check(json.loads(request.parameters() or "{}"))
        results = run(read_inputs(request).arrays)
        wanted = set(request.requested_output_names()) or set(outputs)
        tensors = [pb_utils.Tensor(name, results[name]) for name in outputs if name in results and name in wanted]
        return pb_utils.InferenceResponse(output_tensors=tensors)
    except RequestRejected as error:
        return _failure(str(error), pb_utils.TritonError.INVALID_ARG)
    except pb_utils.TritonModelException as error:
        return _failure(f"the input tensors cannot be read: {error}", pb_utils.TritonError.INVALID_ARG)
    except Exception as error:  # noqa: BLE001 (top of a request: the others of the call must be answered)
        _log.exception("request failed")
        return _failure(f"{type(error).__name__}: {error}", pb_utils.TritonError.INTERNAL)


def _failure(message: str, code: int) -> Any:
    return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(message, code))
