"""Parameters of the tensorrtllm backend."""

from __future__ import annotations

from collections.abc import Iterator

from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import ModelView, RepositoryView

ENGINE_PATHS = ("gpt_model_path", "encoder_model_path")
MODEL_TYPES = ("inflight_fused_batching", "inflight_batching", "V1", "v1")
SCHEDULER_POLICIES = ("guaranteed_no_evict", "max_utilization")
MEMORY_LIMITS = ("kv_cache_free_gpu_mem_fraction", "max_tokens_in_paged_kv_cache")


def _engine_path_is_absolute(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.backend != "tensorrtllm":
        return
    paths = {key: model.parameter(key) for key in ENGINE_PATHS}
    if not any(paths.values()):
        yield Problem(
            "parameter gpt_model_path is missing; the backend has no engine to load",
            "set gpt_model_path to the engine's folder as the server sees it",
            line=model.line("parameters"),
        )
    for key, path in paths.items():
        if path and not path.startswith("/") and not _is_placeholder(path):
            yield Problem(
                f"{key} is {path!r}, a relative path; it is taken from the server's working directory, not from the "
                f"model's folder",
                "write an absolute path as the server sees it",
                line=model.parameter_line(key),
                severity=Severity.WARNING,
            )


def _model_type_is_known(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.backend != "tensorrtllm":
        return
    kind = model.parameter("gpt_model_type")
    if kind is None or (kind not in MODEL_TYPES and not _is_placeholder(kind)):
        found = "missing" if kind is None else f"{kind!r}"
        yield Problem(
            f"parameter gpt_model_type is {found}; the backend refuses to load without a known one",
            f"set it to one of {', '.join(MODEL_TYPES)}",
            line=model.parameter_line("gpt_model_type"),
        )


def _values_are_known(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    policy = model.parameter("batch_scheduler_policy")
    if model.backend == "tensorrtllm" and policy and policy not in SCHEDULER_POLICIES and not _is_placeholder(policy):
        yield Problem(
            f"batch_scheduler_policy is {policy!r}; the backend warns and uses guaranteed_no_evict",
            f"set it to one of {', '.join(SCHEDULER_POLICIES)}",
            line=model.parameter_line("batch_scheduler_policy"),
        )


def _memory_is_limited(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.backend != "tensorrtllm":
        return
    limits = [model.parameter(key) for key in MEMORY_LIMITS]
    if all(not limit or _is_placeholder(limit) for limit in limits):
        yield Problem(
            "neither kv_cache_free_gpu_mem_fraction nor max_tokens_in_paged_kv_cache is set: the KV cache takes 90 % "
            "of the GPU memory that is free when the model is loaded, and a second model finds none",
            "set kv_cache_free_gpu_mem_fraction when several models share a GPU",
            line=model.line("parameters"),
        )


def _is_placeholder(value: str) -> bool:
    return "${" in value or "{{" in value  # reported as such


TENSORRT_LLM_RULES = (
    ModelRule(
        "trtllm-model-path",
        Severity.ERROR,
        "The tensorrtllm backend finds its engine through gpt_model_path alone; it never looks at version folders.",
        _engine_path_is_absolute,
    ),
    ModelRule(
        "trtllm-model-type",
        Severity.ERROR,
        "gpt_model_type has no default in the backend.",
        _model_type_is_known,
    ),
    ModelRule(
        "trtllm-parameter",
        Severity.WARNING,
        "Values that the backend does not know become its default with a line in the log.",
        _values_are_known,
    ),
    ModelRule(
        "trtllm-kv-cache",
        Severity.INFO,
        "By default the KV cache takes nearly all of the free GPU memory.",
        _memory_is_limited,
    ),
)
