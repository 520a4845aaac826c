"""Batching, queues, and what excludes what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tritonclient.grpc.model_config_pb2 import ModelQueuePolicy

from tritonforge.releases.table import version_key
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.trtllm_engine import release_of
from tritonforge.repository.lint.view import ModelView, RepositoryView

# Fields that came after 24.10, with the container release that brought them.
NEW_FIELDS: Mapping[tuple[str, ...], str] = {
    ("model_metrics",): "24.11",
    ("ensemble_scheduling", "max_inflight_requests"): "25.11",
}


def _batch_size_is_possible(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    size = model.config.max_batch_size
    if size < 0:
        yield Problem(
            f"max_batch_size is {size}; Triton refuses a negative value",
            "use 0 for no batch dimension, or the largest batch",
            line=model.line("max_batch_size"),
        )


def _preferred_sizes_fit(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    largest = model.config.max_batch_size
    for block, sizes in (
        (("dynamic_batching",), model.config.dynamic_batching.preferred_batch_size),
        (("sequence_batching", "oldest"), model.config.sequence_batching.oldest.preferred_batch_size),
    ):
        for index, size in enumerate(sizes):
            if size <= 0 or size > largest:
                yield Problem(
                    f"preferred_batch_size {size} is not between 1 and max_batch_size ({largest}); Triton refuses the "
                    f"model, also where the backend would raise max_batch_size later",
                    "lower it, or raise max_batch_size",
                    line=model.line(*block, "preferred_batch_size", index),
                )


def _batching_has_room(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    if model.config.HasField("dynamic_batching") and model.config.max_batch_size in {0, 1}:
        yield Problem(
            f"dynamic_batching is on while max_batch_size is {model.config.max_batch_size}; nothing is ever batched",
            "raise max_batch_size, or remove dynamic_batching",
            line=model.line("dynamic_batching"),
        )


def _priorities_fit(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    batching = model.config.dynamic_batching
    levels, default = batching.priority_levels, batching.default_priority_level
    if levels and not 1 <= default <= levels:
        yield Problem(
            f"default_priority_level is {default} while priority_levels is {levels}; expected 1 to {levels}",
            "set default_priority_level",
            line=model.line("dynamic_batching", "priority_levels"),
        )
    if batching.preserve_ordering and levels > 1:
        yield Problem(
            f"preserve_ordering is on with {levels} priority levels; Triton refuses the two together",
            "drop one of them",
            line=model.line("dynamic_batching", "preserve_ordering"),
        )
    policy = batching.default_queue_policy
    is_delaying = policy.timeout_action == ModelQueuePolicy.DELAY and policy.default_timeout_microseconds > 0
    if batching.preserve_ordering and is_delaying:
        yield Problem(
            "preserve_ordering is on while default_queue_policy delays requests; Triton refuses the two together",
            "use timeout_action: REJECT, or drop preserve_ordering",
            line=model.line("dynamic_batching", "default_queue_policy"),
        )


def _cache_fits(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    config = model.config
    if not config.response_cache.enable:
        return
    rivals = (
        ("decoupled", config.model_transaction_policy.decoupled),
        ("sequence_batching", config.HasField("sequence_batching")),
    )
    for rival, is_on in rivals:
        if is_on:
            yield Problem(
                f"response_cache is on together with {rival}; Triton refuses the two together",
                "turn response_cache off",
                line=model.line("response_cache"),
            )


def _fields_are_old(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    server = release_of(model)
    for path, release in NEW_FIELDS.items():
        if server is not None and version_key(server.containers[0].tag) >= version_key(release):
            continue  # the engine runs under its own release only, and every server that carries it knows the field
        if path[-1] in (model.text or "") and model.is_written(*path):
            yield Problem(
                f"{path[-1]} is known to Triton {release} and later; older servers refuse the whole config",
                "remove it for older servers, such as the embedded one (24.10)",
                line=model.line(*path),
            )


BATCHING_RULES = (
    ModelRule("batch-size", Severity.ERROR, "max_batch_size is 0 or more.", _batch_size_is_possible),
    ModelRule(
        "preferred-batch-size",
        Severity.ERROR,
        "A preferred batch size lies between 1 and max_batch_size; Triton checks it before the backend fills in more.",
        _preferred_sizes_fit,
    ),
    ModelRule(
        "batching-idle",
        Severity.WARNING,
        "dynamic_batching without a batch dimension, or with batches of one, does nothing and says nothing.",
        _batching_has_room,
    ),
    ModelRule(
        "queue-policy",
        Severity.ERROR,
        "Priorities need a default level, and keeping the order excludes what changes it.",
        _priorities_fit,
    ),
    ModelRule(
        "cache-conflict",
        Severity.ERROR,
        "The response cache keeps one response per request: not for decoupled or sequence models.",
        _cache_fits,
    ),
    ModelRule(
        "new-field",
        Severity.WARNING,
        "A config with a field that the server's protobuf does not know is refused as a whole.",
        _fields_are_old,
    ),
)
