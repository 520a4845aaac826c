"""Configs of the tensorrtllm backend against the engine that they load and the release that runs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import DataType, ModelInstanceGroup

from tritonforge.errors import TritonforgeError, did_you_mean
from tritonforge.formats.json_fields import JsonFields, read_json_object
from tritonforge.formats.trtllm_engine import same_release
from tritonforge.releases.backend import where_parameter_exists
from tritonforge.repository.layout import SERVING_NAME, serving_folder, split_engine_model_name
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.trtllm_engine import (
    BACKEND,
    KIND_PARAMETER,
    RELEASE_PARAMETER,
    leads_to,
    line_of,
    own_engines,
    own_infos,
    release_of,
)
from tritonforge.repository.lint.view import ModelView, RepositoryView
from tritonforge.repository.pbtxt import name_of
from tritonforge.repository.tensorrt_llm import FORGE_PARAMETERS, has_paged_context_fmha

MOST_DIGITS = 18  # of a number that is read
TRUE = frozenset({"True", "true", "TRUE", "1"})


def _engines_are_whole(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for engine in own_engines(model):
        if engine.problem is not None:
            yield Problem(engine.problem.message, engine.problem.hint or "build it again", path=engine.folder)


def _path_is_its_own_versions(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    path = model.parameter("gpt_model_path") or ""
    if model.backend != BACKEND or model.parameter(KIND_PARAMETER) is None or not path.startswith("/"):
        return
    for number in model.loaded_versions:
        if not leads_to(model, number):
            yield Problem(
                f"gpt_model_path is {path!r}, which is not this model's version {number}; the backend loads the engine "
                f"that lies there, whatever is in this folder",
                f"end it with /{model.name}/{number}, or build this version again with --replace",
                line=model.parameter_line("gpt_model_path"),
            )


def _release_is_the_engines(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    named = model.parameter(RELEASE_PARAMETER)
    for engine, info in own_infos(model):
        if named and not same_release(info.version, named):
            yield Problem(
                f"version {engine.number} was built by TensorRT-LLM {info.version}, and the config is for {named}; an "
                f"engine runs under the release that built it only",
                "build this version again with --replace",
                line=model.parameter_line(RELEASE_PARAMETER),
            )


def _limits_are_the_engines(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    for engine, info in own_infos(model):
        if model.config.max_batch_size > info.max_batch_size:
            yield Problem(
                f"max_batch_size is {model.config.max_batch_size}, and the engine of version {engine.number} was built "
                f"for {info.max_batch_size}; it runs no more than that at once, and the others wait",
                f"set max_batch_size: {info.max_batch_size}, or build the engine for more",
                line=model.line("max_batch_size"),
            )
        for name in ("max_beam_width", "max_input_len", "max_seq_len"):
            text, most = model.parameter(name) or "", getattr(info, name)
            if text.isdecimal() and (len(text) > MOST_DIGITS or int(text) > most):
                yield Problem(
                    f"{name} is {text}, and the engine of version {engine.number} was built for {most}",
                    f"set it to {most}, or build the engine for more",
                    line=model.parameter_line(name),
                    severity=Severity.ERROR if name == "max_beam_width" else None,
                )


def _gateway_holds_to_them(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    called = split_engine_model_name(model.name)
    if called is None or called[0] not in repository.models:
        return
    for engine, info in own_infos(model):
        path = serving_folder(repository.models[called[0]].folder, engine.number) / SERVING_NAME
        limits = _limits_in(path)
        for name in ("max_input_len", "max_seq_len"):
            if limits.get(name, 0) > getattr(info, name):
                yield Problem(
                    f"limits.{name} is {limits[name]}, and the engine was built for {getattr(info, name)}; the gateway "
                    f"lets requests pass that the engine refuses",
                    "publish the model again",
                    path=path,
                )


def _limits_in(path: Path) -> Mapping[str, int]:
    try:
        limits = JsonFields(read_json_object(path), path).nested("limits")
    except TritonforgeError:
        return {}  # a gateway without it is reported by route-target
    values = {} if limits is None else limits.values
    return {name: value for name, value in values.items() if isinstance(value, int)}


def _engine_has_what_is_turned_on(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    wanted = {
        "enable_chunked_context": Severity.ERROR,
        "enable_kv_cache_reuse": Severity.WARNING,
    }
    for engine, info in own_infos(model):
        for name, severity in wanted.items():
            if model.parameter(name) in TRUE and not has_paged_context_fmha(info):
                yield Problem(
                    f"{name} is on, and the engine of version {engine.number} was built without paged context FMHA, "
                    f"which it needs",
                    "turn it off, or build the engine with plugins.paged_context_fmha: true",
                    line=model.parameter_line(name),
                    severity=severity,
                )


def _parameters_are_of_the_release(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    line, release = line_of(model), release_of(model)
    if line is None or release is None:
        return
    known = {parameter.name for parameter in line.parameters}
    for name in sorted(set(model.config.parameters) - known - FORGE_PARAMETERS):
        lines, near = where_parameter_exists(name), did_you_mean(name, sorted(known))
        if lines is None and near is None:
            continue  # somebody's own note; the backend passes over it
        there = f"; the backends of {lines} have it" if lines else ""
        yield Problem(
            f"parameter {name!r} has no effect: the backend of TensorRT-LLM {release.name} does not read it{there}",
            near or "take it out",
            line=model.parameter_line(name),
        )
    for parameter in line.parameters:
        if parameter.must_exist and parameter.name not in model.config.parameters:
            yield Problem(
                f"parameter {parameter.name!r} is missing; the backend of TensorRT-LLM {release.name} reads it without "
                f"a default and does not load",
                "write it with an empty value",
                line=model.line("parameters"),
                severity=Severity.ERROR,
            )


def _tensors_are_of_the_release(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    line, release = line_of(model), release_of(model)
    if line is None or release is None:
        return
    for side, tensors, known in (
        ("input", model.config.input, {tensor.name: tensor for tensor in line.inputs}),
        ("output", model.config.output, {tensor.name: tensor for tensor in line.outputs}),
    ):
        for index, tensor in enumerate(tensors):
            expected, found = known.get(tensor.name), name_of(DataType, tensor.data_type)
            if expected is not None and expected.type != found and not tensor.name.endswith("_logits"):
                yield Problem(
                    f"{side} {tensor.name!r} is {found}; the backend of TensorRT-LLM {release.name} takes it as "
                    f"{expected.type}, whatever the config says",
                    f"write data_type: {expected.type}",
                    line=model.line(side, index),
                )


def _instances_are_as_the_backend_wants(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    for index, group in enumerate(model.config.instance_group) if model.backend == BACKEND else ():
        if group.kind not in {ModelInstanceGroup.KIND_CPU, ModelInstanceGroup.KIND_MODEL}:
            kind = name_of(ModelInstanceGroup.Kind, group.kind)
            yield Problem(
                f"instance group {index + 1} is {kind}; the backend places the engine itself, and Triton would load it "
                f"once for each GPU of the machine",
                "write { kind: KIND_CPU count: 1 }, and the GPUs in parameter gpu_device_ids",
                line=model.line("instance_group", index),
            )


TENSORRT_LLM_ENGINE_RULES = (
    ModelRule(
        "trtllm-engine",
        Severity.ERROR,
        "An engine is its config.json and one file per rank; without one of them the backend does not load.",
        _engines_are_whole,
    ),
    ModelRule(
        "trtllm-own-version",
        Severity.ERROR,
        "The backend loads the engine at gpt_model_path: another version's path serves that version under this name.",
        _path_is_its_own_versions,
    ),
    ModelRule(
        "trtllm-release",
        Severity.ERROR,
        "TensorRT engines run under the release that built them only.",
        _release_is_the_engines,
    ),
    ModelRule(
        "trtllm-limits",
        Severity.WARNING,
        "What an engine takes is fixed when it is built; a config that says more does not change it.",
        _limits_are_the_engines,
    ),
    ModelRule(
        "trtllm-gateway-limits",
        Severity.ERROR,
        "A gateway refuses what its engine cannot take; with limits above the engine's it does not.",
        _gateway_holds_to_them,
    ),
    ModelRule(
        "trtllm-paged-context",
        Severity.ERROR,
        "Chunked context and KV cache reuse read the cache in pages, which an engine must be built for.",
        _engine_has_what_is_turned_on,
    ),
    ModelRule(
        "trtllm-unknown-parameter",
        Severity.WARNING,
        "The backend reads the parameters of its release and passes over all others without a word.",
        _parameters_are_of_the_release,
    ),
    ModelRule(
        "trtllm-tensor-type",
        Severity.ERROR,
        "The backend reads the bytes of a tensor as the type of its release, not as the one in the config.",
        _tensors_are_of_the_release,
    ),
    ModelRule(
        "trtllm-instances",
        Severity.WARNING,
        "The backend wants one instance of KIND_CPU, and takes its GPUs from gpu_device_ids.",
        _instances_are_as_the_backend_wants,
    ),
)
