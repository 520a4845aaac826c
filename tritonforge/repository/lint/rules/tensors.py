"""Inputs and outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import TYPE_INVALID, ModelInput, ModelOutput

from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import ModelView, RepositoryView

# Backends that read names, types and shapes from the model file and fill in what the config leaves out.
SELF_DESCRIBING_BACKENDS = frozenset({"onnxruntime", "openvino", "tensorflow", "tensorrt", "vllm", "dali"})


@dataclass(frozen=True, slots=True)
class _Tensor:
    side: str
    index: int
    value: ModelInput | ModelOutput

    @property
    def title(self) -> str:
        return f"{self.side} {self.value.name!r}" if self.value.name else f"{self.side} number {self.index + 1}"


def _tensors_are_complete(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    can_fill = model.backend in SELF_DESCRIBING_BACKENDS
    for tensor in _tensors(model):
        missing = [
            what
            for what, is_missing in (
                ("name", not tensor.value.name),
                ("data_type", tensor.value.data_type == TYPE_INVALID),
                ("dims", not tensor.value.dims),
            )
            if is_missing
        ]
        if missing:
            yield Problem(
                f"{tensor.title} has no {' and no '.join(missing)}; Triton refuses the model",
                "give each tensor a name, a data_type such as TYPE_FP32, and dims (without the batch dimension)",
                line=model.line(tensor.side, tensor.index),
                severity=Severity.WARNING if can_fill else None,
            )


def _dims_are_possible(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for tensor in _tensors(model):
        for index, size in enumerate(tensor.value.dims):
            if size < 1 and size != -1:
                yield Problem(
                    f"{tensor.title} has a dimension of {size}; expected 1 or more, or -1 for any",
                    "use -1 for a dimension that varies",
                    line=model.line(tensor.side, tensor.index, "dims", index),
                )


def _names_are_distinct(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for side, effect in (("input", "no request can satisfy both"), ("output", "the second one is ignored")):
        tensors = [tensor for tensor in _tensors(model) if tensor.side == side]
        counts = Counter(tensor.value.name for tensor in tensors)
        seen: set[str] = set()
        for tensor in tensors:
            name = tensor.value.name
            if name and counts[name] > 1 and name in seen:
                yield Problem(
                    f"{side} {name!r} is given twice; {effect}",
                    "remove one of them, or rename it",
                    line=model.line(side, tensor.index),
                    severity=None if side == "input" else Severity.WARNING,
                )
            seen.add(name)


def _reshape_keeps_the_count(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    for tensor in _tensors(model):
        if not tensor.value.HasField("reshape"):
            continue
        dims, shape = list(tensor.value.dims), list(tensor.value.reshape.shape)
        if not shape and model.config.max_batch_size == 0:
            yield Problem(
                f"{tensor.title} has an empty reshape while max_batch_size is 0; Triton refuses that",
                "set max_batch_size, or remove reshape",
                line=model.line(tensor.side, tensor.index, "reshape"),
            )
        elif _elements(dims) != _elements(shape):
            yield Problem(
                f"{tensor.title}: dims {dims} and reshape {shape} differ in their number of elements",
                "give both shapes the same product, and -1 in both or in neither",
                line=model.line(tensor.side, tensor.index, "reshape"),
            )


def _elements(shape: list[int]) -> int:
    """Number of elements as Triton counts it: -1 as soon as one dimension varies."""
    if -1 in shape:
        return -1
    count = 1
    for size in shape:
        count *= size
    return count


def _tensors(model: ModelView) -> Iterator[_Tensor]:
    assert model.config is not None
    for side, tensors in (("input", model.config.input), ("output", model.config.output)):
        for index, tensor in enumerate(tensors):
            yield _Tensor(side, index, tensor)


TENSOR_RULES = (
    ModelRule(
        "tensor-incomplete",
        Severity.ERROR,
        "Each tensor needs name, data_type and dims, unless the backend reads them from the model file.",
        _tensors_are_complete,
    ),
    ModelRule("tensor-dims", Severity.ERROR, "A dimension is 1 or more, or -1 for any size.", _dims_are_possible),
    ModelRule(
        "tensor-duplicate",
        Severity.ERROR,
        "Of two tensors with one name the second is ignored; for inputs, requests can then never be complete.",
        _names_are_distinct,
    ),
    ModelRule(
        "tensor-reshape",
        Severity.ERROR,
        "A reshape must keep the number of elements; an empty one needs a batch dimension and dims of one element.",
        _reshape_keeps_the_count,
    ),
)
