"""Instance groups."""

from __future__ import annotations

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelInstanceGroup

from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import ModelView, RepositoryView
from tritonforge.repository.pbtxt import name_of

WITHOUT_GPUS = (ModelInstanceGroup.KIND_CPU, ModelInstanceGroup.KIND_MODEL)


def _gpus_fit_the_kind(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    for index, group in enumerate(model.config.instance_group):
        kind = name_of(ModelInstanceGroup.Kind, group.kind)
        if group.kind in WITHOUT_GPUS and group.gpus:
            yield Problem(
                f"instance group {index + 1} is {kind} and lists gpus {list(group.gpus)}; Triton refuses the model",
                "use KIND_GPU, or remove gpus",
                line=model.line("instance_group", index),
            )
        if any(gpu < 0 for gpu in group.gpus):
            yield Problem(
                f"instance group {index + 1} lists gpus {list(group.gpus)}; GPU numbers begin at 0",
                "use the numbers that nvidia-smi shows",
                line=model.line("instance_group", index),
            )


def _counts_are_meant(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    for index, group in enumerate(model.config.instance_group):
        if group.count < 0:
            line = model.line("instance_group", index)
            yield Problem(f"count is {group.count}; Triton silently uses its default", "use 1 or more", line=line)
        elif group.kind == ModelInstanceGroup.KIND_GPU and not group.gpus and group.count > 1:
            yield Problem(
                f"count is {group.count} per GPU, and no gpus are listed: {group.count} instances on every GPU of the "
                f"machine",
                "list gpus if that is not meant",
                line=model.line("instance_group", index),
                severity=Severity.INFO,
            )


def _python_kind_is_given(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    if model.backend == "python" and not model.is_ensemble and not model.config.instance_group:
        yield Problem(
            "instance_group is not given; on a machine with GPUs Triton starts one process of this model per GPU",
            "write instance_group [ { kind: KIND_CPU count: 1 } ] if the model does not use them",
        )


INSTANCE_RULES = (
    ModelRule("instance-gpus", Severity.ERROR, "KIND_CPU and KIND_MODEL take no list of GPUs.", _gpus_fit_the_kind),
    ModelRule(
        "instance-count",
        Severity.WARNING,
        "A count below 1 becomes the default without a word; for KIND_GPU the count is per GPU.",
        _counts_are_meant,
    ),
    ModelRule(
        "instance-kind",
        Severity.INFO,
        "The default kind is KIND_GPU wherever there is a GPU, also for Python models that use none.",
        _python_kind_is_given,
    ),
)
