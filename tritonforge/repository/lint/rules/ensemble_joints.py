"""Ensembles: what the two ends of a joint must agree on, and the version that clients are sent to."""

from __future__ import annotations

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import DataType

from tritonforge.errors import RepositoryError
from tritonforge.repository.ensemble import EnsembleNames, the_one_version
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import ModelView, RepositoryView
from tritonforge.repository.pbtxt import name_of
from tritonforge.repository.routes import parse_routes


def _types_agree(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    seen = {
        tensor.name: ("the ensemble", tensor.data_type)
        for side in (model.config.input, model.config.output)
        for tensor in side
    }
    for index, step in enumerate(model.config.ensemble_scheduling.step):
        used = repository.models.get(step.model_name)
        if used is None or used.config is None:
            continue
        sides = (("input_map", step.input_map, used.config.input), ("output_map", step.output_map, used.config.output))
        for field, mapped, tensors in sides:
            types = {tensor.name: tensor.data_type for tensor in tensors}
            for key in sorted(set(mapped) & set(types)):
                name, own = mapped[key], types[key]
                place, other = seen.setdefault(name, (f"{key!r} of {step.model_name!r}", own))
                if own != other:
                    yield Problem(
                        f"step {index + 1} joins {key!r} of {step.model_name!r}, which is {name_of(DataType, own)}, to "
                        f"{name!r}, which is {name_of(DataType, other)} in {place}",
                        "give both the same data_type, or map another tensor",
                        line=model.line("ensemble_scheduling", "step", index, field),
                    )


def _batches_fit(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    most = model.config.max_batch_size
    for index, step in enumerate(model.config.ensemble_scheduling.step):
        used = repository.models.get(step.model_name)
        own = used.config.max_batch_size if used is not None and used.config is not None else 0
        if own and own < most:
            yield Problem(
                f"max_batch_size is {most}, but {own} in {step.model_name!r}, the model of step {index + 1}",
                f"write max_batch_size: {own}, or less",
                line=model.line("max_batch_size"),
            )


def _streams_keep_their_order(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    steps = [
        (index, step, used.config)
        for index, step in enumerate(model.config.ensemble_scheduling.step)
        if (used := repository.models.get(step.model_name)) is not None and used.config is not None
    ]
    streamed = {
        name
        for _, step, config in steps
        if config.model_transaction_policy.decoupled
        for name in step.output_map.values()
    }
    for index, step, config in steps:
        count = sum(max(group.count, 1) for group in config.instance_group)
        if count > 1 and streamed & set(step.input_map.values()):
            yield Problem(
                f"step {index + 1} takes pieces of a streamed answer, and {step.model_name!r} has {count} instances, "
                f"which finish out of order: the text is scrambled",
                f"give {step.model_name!r} one instance: instance_group [ {{ kind: KIND_CPU count: 1 }} ]",
                line=model.line("ensemble_scheduling", "step", index, "model_name"),
            )


def _steps_follow_the_traffic(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    text = model.parameter("routes")
    if not model.is_ensemble or text is None:
        return
    line = model.parameter_line("routes")
    try:
        number = the_one_version(model.name, parse_routes(text, source="parameter").weights)
    except RepositoryError as error:
        yield Problem(error.message, error.hint or "publish the model again", line=line)
        return
    wanted = EnsembleNames(model.name, number).engine
    named = [step.model_name for step in model.config.ensemble_scheduling.step]
    if wanted not in named:
        yield Problem(
            f"routes gives version {number} all of the traffic, but the steps are {', '.join(named)}",
            f"move the traffic again: tritonforge traffic {model.folder.parent} {model.name} {number}=100",
            line=line,
        )


ENSEMBLE_JOINT_RULES = (
    ModelRule(
        "ensemble-type",
        Severity.ERROR,
        "A tensor of an ensemble has one data type wherever it is used; Triton refuses the ensemble otherwise.",
        _types_agree,
    ),
    ModelRule(
        "ensemble-batch",
        Severity.ERROR,
        "Every step must take batches as large as those of the ensemble; Triton refuses the ensemble otherwise.",
        _batches_fit,
    ),
    ModelRule(
        "ensemble-order",
        Severity.WARNING,
        "Triton passes pieces of a stream on as they are done; several instances behind a decoupled step mix them up.",
        _streams_keep_their_order,
    ),
    ModelRule(
        "ensemble-route",
        Severity.ERROR,
        "The steps of an ensemble name the models of one version: the one that its routes give all of the traffic.",
        _steps_follow_the_traffic,
    ),
)
