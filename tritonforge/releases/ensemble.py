"""NVIDIA's ensemble around the `tensorrtllm` backend, line by line: tensors of its models, and how its steps join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tritonforge.releases.backend import Tensor
from tritonforge.releases.files import read_data
from tritonforge.releases.table import Release, covers

# The engine's step, beside the models that the line describes itself.
PREPROCESSING, ENGINE, POSTPROCESSING = "preprocessing", "engine", "postprocessing"


@dataclass(frozen=True, slots=True)
class Joint:
    """One tensor of a step's model, joined to a tensor of the ensemble.

    Args:
        tensor: Name in the step's model.
        ensemble_tensor: Name in the ensemble.
        feeds: For an input of preprocessing, the output that it is there for, when it is there for one alone.
    """

    tensor: str
    ensemble_tensor: str
    feeds: str | None = None


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step of the ensemble.

    Args:
        inputs: Tensors that the step's model has; empty for the engine, whose own config says them.
        outputs: As the inputs.
        input_joints: Where the inputs come from.
        output_joints: Where the outputs go.
        has_dynamic_batching: Upstream lets Triton batch the calls of the model.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    input_joints: tuple[Joint, ...]
    output_joints: tuple[Joint, ...]
    has_dynamic_batching: bool = False


@dataclass(frozen=True, slots=True)
class EnsembleLine:
    """The ensemble as one line of TensorRT-LLM has it.

    Args:
        line: For example ``0.16``.
        inputs: Inputs of the ensemble.
        outputs: Its outputs.
        steps: Its steps by name, in the order in which they run.
        evidence: ``read`` in a tag of the backend, or ``inferred`` from the line before.
        source: Where that was read, in words.
        has_read_joints: Joints were read there, too; else they follow from the line's tensors and from other lines.
    """

    line: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    steps: Mapping[str, StepLine]
    evidence: str
    source: str
    has_read_joints: bool

    @property
    def remark_on_joints(self) -> str:
        """What to say behind the source of the tensors when the joints are known less well; often nothing."""
        if self.has_read_joints or self.evidence != "read":
            return ""
        return " (its joints are inferred from those of other lines)"


def ensemble_line(release: Release) -> EnsembleLine:
    """The ensemble of a release."""
    return _line(release.line)


def newest_read_line() -> EnsembleLine:
    """The newest line whose files were read: what an engine is served with that is of no release of TensorRT-LLM."""
    return _line(read_data("ensemble")["evidence"]["read"]["until"])


def known_inputs() -> tuple[str, ...]:
    """Names of the inputs that the ensemble has in any line, sorted."""
    return tuple(sorted({row["name"] for row in read_data("ensemble")["ensemble"]["inputs"]}))


@cache
def _line(line: str) -> EnsembleLine:
    data = read_data("ensemble")
    evidence = next(name for name, span in data["evidence"].items() if covers(span, line))
    return EnsembleLine(
        line=line,
        inputs=_tensors(data["ensemble"]["inputs"], line),
        outputs=_tensors(data["ensemble"]["outputs"], line),
        steps={name: _step(data, name, line) for name in (PREPROCESSING, ENGINE, POSTPROCESSING)},
        evidence=evidence,
        source=data["evidence"][evidence]["source"],
        has_read_joints=line in data["evidence"][evidence].get("joints", ()),
    )


def _step(data: Mapping[str, Any], name: str, line: str) -> StepLine:
    inputs, outputs = data[name]["inputs"], data[name]["outputs"]
    batching = data["dynamic_batching"].get(name)
    return StepLine(
        inputs=_tensors(inputs, line) if name != ENGINE else (),
        outputs=_tensors(outputs, line) if name != ENGINE else (),
        input_joints=_joints(inputs, "from", line),
        output_joints=_joints(outputs, "to", line),
        has_dynamic_batching=batching is not None and covers(batching, line),
    )


def _tensors(rows: Sequence[Mapping[str, Any]], line: str) -> tuple[Tensor, ...]:
    return tuple(
        Tensor(
            name=row["name"],
            type=f"TYPE_{row['type']}",
            dims=tuple(row["dims"]),
            optional=row.get("optional", False),
            ragged=row.get("ragged", False),
        )
        for row in rows
        if covers(row, line)
    )


def _joints(rows: Sequence[Mapping[str, Any]], side: str, line: str) -> tuple[Joint, ...]:
    found = (row for row in rows if side in row and covers(row, line))
    return tuple(Joint(row["name"], row[side], row.get("feeds")) for row in found)
