"""The `tensorrtllm` backend of each line: tensors and parameters of its engine model, and what their values may be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tritonforge.errors import did_you_mean
from tritonforge.releases.files import read_data
from tritonforge.releases.table import Release, all_lines, version_key

# As C++ reads them: Python would take 1_000, other scripts' digits and the names of infinity for numbers, too.
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_KEY = re.compile(r"(?:engine|limits|runtime)\.[a-z0-9_]+")  # of forge.yaml
ParameterValue = str | int | float | bool | Sequence[int]


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
class Parameter:
    """A parameter that the backend reads from the model's config.

    Args:
        name: Its key.
        type: ``text``, ``int``, ``float``, ``bool``, ``choice``, ``ints`` (a list) or ``device_ids`` (lists).
        meaning: What it does, for people.
        default: What the backend takes when it is not written, in words; None when it cannot be left out.
        value: What is always written; None when that depends.
        source: Where its value comes from: a key of forge.yaml or the engine; None when only
            ``runtime.parameters`` sets it.
        choices: Values of a ``choice``.
        minimum: Smallest number, included; None for any.
        above: Number that must be exceeded; None for any.
        maximum: Largest number, included; None for any.
        must_exist: The backend reads it without a fallback, so it is written even when empty.
        needs: Another parameter without which it does nothing; None when there is none.
    """

    name: str
    type: str
    meaning: str
    default: str | None = None
    value: str | None = None
    source: str | None = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    must_exist: bool = False
    needs: str | None = None


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


def parameter_text(value: ParameterValue) -> str:
    """A value as the backend reads it: lower-case flags, lists with commas."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    return ",".join(str(item) for item in value)


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
    expected = _expected(parameter, parameter_text(value))
    return None if expected is None else ParameterProblem(name, f"is {parameter_text(value)!r}; expected {expected}")


# Filled from the engine, unless forge.yaml says otherwise.
_OVERRIDABLE = frozenset({"enable_kv_cache_reuse"})


def _is_free(parameter: Parameter) -> bool:
    return parameter.value is None and (parameter.source is None or parameter.name in _OVERRIDABLE)


def _expected(parameter: Parameter, text: str) -> str | None:
    """What was expected instead of a value; None when the value will do."""
    match parameter.type:
        case "bool":
            return None if text in {"true", "false"} else "true or false"
        case "choice":
            return None if text in parameter.choices else f"one of {', '.join(parameter.choices)}"
        case "int" | "float":
            return None if _is_number(parameter, text, whole=parameter.type == "int") else _number_words(parameter)
        case "ints":
            is_list = all(_is_number(parameter, item.strip(), whole=True) for item in text.split(","))
            return None if is_list else "whole numbers, separated by commas"
        case "device_ids":
            is_list = all(item.isascii() and item.strip().isdecimal() for item in re.split("[,;]", text))
            return None if is_list else "numbers, separated by commas or semicolons"
        case _:
            return None if text.strip() and text.isprintable() else "some text without control characters"


def _is_number(parameter: Parameter, text: str, *, whole: bool) -> bool:
    if not (_WHOLE if whole else _NUMBER).fullmatch(text):
        return False
    number = int(text) if whole else float(text)
    return (
        abs(number) < 2**63
        and (parameter.minimum is None or number >= parameter.minimum)
        and (parameter.above is None or number > parameter.above)
        and (parameter.maximum is None or number <= parameter.maximum)
    )


def _number_words(parameter: Parameter) -> str:
    bounds = [
        f"{words} {bound:g}"
        for words, bound in (
            ("at least", parameter.minimum),
            ("above", parameter.above),
            ("at most", parameter.maximum),
        )
        if bound is not None
    ]
    return " ".join(["a whole number" if parameter.type == "int" else "a number", " and ".join(bounds)]).strip()


@cache
def _line(line: str) -> BackendLine:
    data = read_data("backend")
    evidence = next(name for name, span in data["evidence"].items() if _covers(span, line))
    return BackendLine(
        line=line,
        inputs=tuple(_tensor(row) for row in data["inputs"] if _covers(row, line)),
        outputs=tuple(_tensor(row) for row in data["outputs"] if _covers(row, line)),
        parameters=tuple(_parameter(row, line) for row in data["parameters"] if _covers(row, line)),
        has_queue_policy=_covers(data["header"]["default_queue_policy"], line),
        aliases={row["name"]: row["also"] for row in data["aliases"] if _covers(row, line)},
        evidence=evidence,
        source=data["evidence"][evidence]["source"],
    )


def _covers(row: Mapping[str, Any], line: str) -> bool:
    key = version_key(line)
    return version_key(row.get("since", "0")) <= key <= version_key(row.get("until", "9999"))


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
        default = next(form["value"] for form in default if _covers(form, line))
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
