"""Parameters of the tensorrtllm backend."""

from __future__ import annotations

from collections.abc import Iterator

from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import ModelView, RepositoryView

ENGINE_PATHS = ("gpt_model_path", "encoder_model_path")
MODEL_TYPES = ("inflight_fused_batching", "inflight_batching", "V1", "v1")
SCHEDULER_POLICIES = ("guaranteed_no_evict", "max_utilization")
# Of the GPU memory that is free: what the backend takes by default, and from where on two engines do not fit.
DEFAULT_SHARE, LARGE_SHARE = 0.9, 0.5
MOST_NAMES = 3
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


def _memory_is_shared(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    share = _memory_share(model)
    if model.backend != "tensorrtllm" or share is None or share < LARGE_SHARE:
        return
    others = [
        other.name
        for other in repository.models.values()
        if other.backend == "tensorrtllm" and other.name != model.name and _gpus(other) & _gpus(model)
    ]
    if others:
        yield Problem(
            f"kv_cache_free_gpu_mem_fraction is {share:g} on a GPU that is also used by {_shown(others)}: the KV cache "
            f"of the one that is loaded first leaves too little for the weights of the next",
            "give each of them a smaller share, or max_tokens_in_paged_kv_cache",
            line=model.parameter_line("kv_cache_free_gpu_mem_fraction"),
        )


def _shown(names: list[str]) -> str:
    first = ", ".join(sorted(names)[:MOST_NAMES])
    return first if len(names) <= MOST_NAMES else f"{first} and {len(names) - MOST_NAMES} others"


def _memory_share(model: ModelView) -> float | None:
    """Share of the free GPU memory that the KV cache takes; None when it is bounded in tokens, or not to be read."""
    if (model.parameter("max_tokens_in_paged_kv_cache") or "").isdecimal():
        return None
    try:
        return float(model.parameter("kv_cache_free_gpu_mem_fraction") or DEFAULT_SHARE)
    except ValueError:
        return None  # a placeholder, reported as one


def _gpus(model: ModelView) -> set[str]:
    """Numbers of the GPUs that an engine is on: the first one when none is named."""
    named = model.parameter("gpu_device_ids") or "0"
    return {number.strip() for instance in named.split(";") for number in instance.split(",")}


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
    ModelRule(
        "trtllm-kv-cache-shared",
        Severity.WARNING,
        "Each engine sizes its KV cache by what is free when it is loaded, not by what the others will need.",
        _memory_is_shared,
    ),
)
