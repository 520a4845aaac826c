"""The `tensorrtllm` backend of each line: tensors and parameters of its engine model, and what their values may be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tritonforge.errors import did_you_mean
from tritonforge.releases.files import read_data
from tritonforge.releases.parameter import Parameter, ParameterValue, expected_instead, parameter_text
from tritonforge.releases.table import Release, all_lines, covers

_KEY = re.compile(r"(?:engine|limits|runtime)\.[a-z0-9_]+")  # of forge.yaml


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of the engine model.

    Args:
        name: Its name.
        type: Data type as a config.pbtxt spells it, for example ``TYPE_INT32``.
        dims: Shape without the batch dimension; -1 for any size.
        optional: A request may leave it out.
        ragged: Requests of different shapes may share a batch.
        reshape: Shape that the backend gets instead; None for the same.
    """

    name: str
    type: str
    dims: tuple[int, ...]
    optional: bool = False
    ragged: bool = False
    reshape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class BackendLine:
    """The backend as one line of TensorRT-LLM has it.

    Args:
        line: For example ``0.16``.
        inputs: Inputs of the engine model.
        outputs: Its outputs.
        parameters: Its parameters, in upstream's order.
        has_queue_policy: Upstream's template of the line has a default_queue_policy.
        aliases: Further names under which the gateway sends an input, by the input's name.
        evidence: ``read`` in a tag of the backend, or ``inferred`` from the line before.
        source: Where that was read, in words.
    """

    line: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parameters: tuple[Parameter, ...]
    has_queue_policy: bool
    aliases: Mapping[str, str]
    evidence: str
    source: str

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of a name; None when the line has none."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def has_input(self, name: str) -> bool:
        """Whether the engine model has an input of this name."""
        return any(tensor.name == name for tensor in self.inputs)


@dataclass(frozen=True, slots=True)
class ParameterProblem:
    """Why a parameter of forge.yaml's ``runtime.parameters`` is refused.

    Args:
        name: The parameter.
        message: What is wrong with it, with its value, and what was expected; to be read after the parameter's name.
        hint: What to do; None when the message says it.
    """

    name: str
    message: str
    hint: str | None = None


def backend_line(release: Release) -> BackendLine:
    """The backend that serves engines of a release."""
    return _line(release.line)


def check_parameters(release: Release, values: Mapping[str, ParameterValue]) -> list[ParameterProblem]:
    """Why some of the values of ``runtime.parameters`` cannot be written; empty when all can.

    Args:
        release: The release whose backend reads them.
        values: Value by name, as forge.yaml has them.
    """
    line = backend_line(release)
    found = (_problem(line, release, name, value) for name, value in values.items())
    return [*(problem for problem in found if problem is not None), *_alone(line, values)]


def where_parameter_exists(name: str) -> str | None:
    """The lines that have a parameter, for messages: ``0.10 to 0.19``; None when no line has it."""
    return _span([line for line in all_lines() if _line(line).parameter(name) is not None])


def where_queue_policy_exists() -> str | None:
    """The lines whose backend has a default_queue_policy, for messages."""
    return _span([line for line in all_lines() if _line(line).has_queue_policy])


def _alone(line: BackendLine, values: Mapping[str, ParameterValue]) -> list[ParameterProblem]:
    """Parameters that do nothing without another one."""
    return [
        ParameterProblem(parameter.name, f"is given without {parameter.needs}; the backend ignores it without a word")
        for parameter in line.parameters
        if parameter.needs is not None and parameter.name in values and parameter.needs not in values
    ]


def _span(lines: Sequence[str]) -> str | None:
    if not lines:
        return None
    return lines[0] if len(lines) == 1 else f"{lines[0]} to {lines[-1]}"


def _problem(line: BackendLine, release: Release, name: str, value: ParameterValue) -> ParameterProblem | None:
    parameter = line.parameter(name)
    if parameter is None:
        lines = where_parameter_exists(name)
        if lines is not None:
            message = f"is no parameter of the backend of TensorRT-LLM {release.name}; it has one in {lines}"
            return ParameterProblem(name, message, f"take it out, or use a release of {lines}")
        known = [known.name for known in line.parameters if _is_free(known)]
        return ParameterProblem(
            name,
            f"is no parameter of the backend of TensorRT-LLM {release.name}",
            did_you_mean(name, known) or f"expected one of {', '.join(sorted(known))}",
        )
    if parameter.value is not None:
        return ParameterProblem(name, f"is always {parameter.value!r} here: {parameter.meaning}", "take it out")
    if parameter.source is not None and name not in _OVERRIDABLE:
        instead = ", and set that" if _KEY.fullmatch(parameter.source) else ""
        return ParameterProblem(name, f"is filled from {parameter.source}", f"take it out of parameters{instead}")
    items = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(item, str | int | float) for item in items) or "${" in parameter_text(value):
        return ParameterProblem(name, f"is {value!r}; expected a plain value: text, a number, true or false, or a list")
    expected = expected_instead(parameter, parameter_text(value))
    return None if expected is None else ParameterProblem(name, f"is {parameter_text(value)!r}; expected {expected}")


# Filled from the engine, unless forge.yaml says otherwise.
_OVERRIDABLE = frozenset({"enable_kv_cache_reuse"})


def _is_free(parameter: Parameter) -> bool:
    return parameter.value is None and (parameter.source is None or parameter.name in _OVERRIDABLE)


@cache
def _line(line: str) -> BackendLine:
    data = read_data("backend")
    evidence = next(name for name, span in data["evidence"].items() if covers(span, line))
    return BackendLine(
        line=line,
        inputs=tuple(_tensor(row) for row in data["inputs"] if covers(row, line)),
        outputs=tuple(_tensor(row) for row in data["outputs"] if covers(row, line)),
        parameters=tuple(_parameter(row, line) for row in data["parameters"] if covers(row, line)),
        has_queue_policy=covers(data["header"]["default_queue_policy"], line),
        aliases={row["name"]: row["also"] for row in data["aliases"] if covers(row, line)},
        evidence=evidence,
        source=data["evidence"][evidence]["source"],
    )


def _tensor(row: Mapping[str, Any]) -> Tensor:
    return Tensor(
        name=row["name"],
        type=f"TYPE_{row['type']}",
        dims=tuple(row["dims"]),
        optional=row.get("optional", False),
        ragged=row.get("ragged", False),
        reshape=tuple(row["reshape"]) if "reshape" in row else None,
    )


def _parameter(row: Mapping[str, Any], line: str) -> Parameter:
    default = row.get("default")
    if isinstance(default, list):
        default = next(form["value"] for form in default if covers(form, line))
    return Parameter(
        name=row["name"],
        type=row["type"],
        meaning=row["meaning"],
        default=default,
        value=row.get("value"),
        source=row.get("from"),
        choices=tuple(row.get("choices", ())),
        minimum=row.get("minimum"),
        above=row.get("above"),
        maximum=row.get("maximum"),
        must_exist=row.get("must_exist", False),
        needs=row.get("needs"),
    )
