"""Ensembles: the graph of one, and its steps against the models that they name."""

from __future__ import annotations

from collections.abc import Iterator

from tritonclient.grpc.model_config_pb2 import ModelEnsembling

from tritonforge.errors import did_you_mean
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.source import Field, find_entries
from tritonforge.repository.lint.view import ModelView, RepositoryView

LATEST = -1


def _is_nothing_but_an_ensemble(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    if not model.is_ensemble:
        return
    config = model.config
    for field, is_given in (
        ("instance_group", bool(config.instance_group)),
        ("optimization", config.HasField("optimization")),
        ("model_warmup", bool(config.model_warmup)),
    ):
        if is_given:
            yield Problem(f"an ensemble takes no {field}; Triton refuses it", f"remove {field}", line=model.line(field))
    if config.platform != "ensemble":
        yield Problem(
            f"ensemble_scheduling is given while platform is {config.platform!r}; Triton refuses the model",
            'write platform: "ensemble"',
            line=model.line("platform") or model.line("ensemble_scheduling"),
        )
    if not config.ensemble_scheduling.step:
        yield Problem("the ensemble has no steps", "add ensemble_scheduling with at least one step")


def _steps_name_models(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    for index, step in _steps(model):
        if step.model_name not in repository.models:
            others = [name for name in repository.models if name != model.name]
            yield Problem(
                f"step {index + 1} names model {step.model_name!r}, which is not in the repository",
                did_you_mean(step.model_name, others) or "add the model, or correct the name",
                line=_step_line(model, index, "model_name"),
            )


def _steps_name_versions(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    for index, step in _steps(model):
        used = repository.models.get(step.model_name)
        if used is None or used.config is None or step.model_version == LATEST:
            continue
        if step.model_version not in used.loaded_versions:
            is_written = any(field.name == "model_version" for field in _step_fields(model, index))
            given = f"model_version {step.model_version}" if is_written else "no model_version, which means version 0,"
            loaded = ", ".join(str(number) for number in used.loaded_versions) or "none"
            yield Problem(
                f"step {index + 1} asks for {given} of {step.model_name!r}; versions that are loaded: {loaded}",
                "write model_version: -1 for the latest",
                line=_step_line(model, index, "model_version"),
            )


def _maps_fit_the_models(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    for index, step in _steps(model):
        used = repository.models.get(step.model_name)
        if used is None or used.config is None:
            continue
        for side, tensors, mapped in (
            ("input", used.config.input, step.input_map),
            ("output", used.config.output, step.output_map),
        ):
            names = [tensor.name for tensor in tensors]
            for key in sorted(set(mapped) - set(names)) if names else ():
                yield Problem(
                    f"step {index + 1} maps {side} {key!r}, which model {step.model_name!r} does not have",
                    did_you_mean(key, names) or f"{side}s of the model: {', '.join(names)}",
                    line=_step_line(model, index, f"{side}_map"),
                )
        for tensor in used.config.input:
            if not tensor.optional and tensor.name not in step.input_map:
                yield Problem(
                    f"step {index + 1} does not map input {tensor.name!r}, which model {step.model_name!r} requires",
                    "map it to an ensemble tensor",
                    line=_step_line(model, index, "input_map"),
                )


def _tensors_are_connected(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    if not model.is_ensemble:
        return
    steps = [step for _, step in _steps(model)]
    inputs = [tensor.name for tensor in model.config.input]
    outputs = [tensor.name for tensor in model.config.output]
    read = {name for step in steps for name in step.input_map.values()}
    written = {name for step in steps for name in step.output_map.values()}
    for index, name in enumerate(inputs):
        if name not in read:
            yield Problem(
                f"ensemble input {name!r} is read by no step; Triton refuses the ensemble",
                "map it, or remove it",
                line=model.line("input", index),
            )
    for index, name in enumerate(outputs):
        if name not in written:
            yield Problem(
                f"ensemble output {name!r} is written by no step; Triton refuses the ensemble",
                did_you_mean(name, sorted(written)) or "map a step's output to it",
                line=model.line("output", index),
            )
    for name in sorted(read - written - set(inputs)):
        yield Problem(
            f"ensemble tensor {name!r} is read, but is neither an input nor written by a step",
            did_you_mean(name, sorted({*written, *inputs})) or "map a step's output to it",
            line=model.line("ensemble_scheduling"),
        )
    for name in sorted(written - read - set(outputs)):
        yield Problem(
            f"ensemble tensor {name!r} is written, but neither read nor an output; Triton refuses the ensemble",
            "remove it from output_map, or make it an output",
            line=model.line("ensemble_scheduling"),
        )


def _steps(model: ModelView) -> list[tuple[int, ModelEnsembling.Step]]:
    assert model.config is not None
    return list(enumerate(model.config.ensemble_scheduling.step))


def _step_line(model: ModelView, index: int, field: str) -> int | None:
    return model.line("ensemble_scheduling", "step", index, field)


def _step_fields(model: ModelView, index: int) -> list[Field]:
    blocks = [entry for field in model.fields if field.name == "ensemble_scheduling" for entry in field.entries]
    steps = [entry for block in blocks for entry in find_entries(block.fields, "step")]
    return list(steps[index].fields) if index < len(steps) else []


ENSEMBLE_RULES = (
    ModelRule(
        "ensemble-block",
        Severity.ERROR,
        "An ensemble has platform ensemble, steps, and none of the settings that belong to its models.",
        _is_nothing_but_an_ensemble,
    ),
    ModelRule(
        "ensemble-model-missing",
        Severity.ERROR,
        "Every step names a model of the repository; without it the ensemble does not load.",
        _steps_name_models,
    ),
    ModelRule(
        "ensemble-version",
        Severity.ERROR,
        "A step without model_version asks for version 0, not for the latest.",
        _steps_name_versions,
    ),
    ModelRule(
        "ensemble-map",
        Severity.ERROR,
        "The keys of input_map and output_map are tensors of the step's model; required inputs must be mapped.",
        _maps_fit_the_models,
    ),
    ModelRule(
        "ensemble-tensor",
        Severity.ERROR,
        "Every tensor of an ensemble is written once and used: inputs read, outputs written, the rest both.",
        _tensors_are_connected,
    ),
)
