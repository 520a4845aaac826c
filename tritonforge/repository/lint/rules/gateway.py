"""Gateways and the engine models that they call."""

from __future__ import annotations

from collections.abc import Iterator

from tritonforge.errors import RepositoryError
from tritonforge.repository.layout import (
    GATEWAY_VERSION,
    SERVING_NAME,
    engine_model_name,
    served_versions,
    serving_folder,
)
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import ModelView, RepositoryView
from tritonforge.repository.routes import Routes, check_weights, parse_routes
from tritonforge.repository.serving import read_served_version

# Parameters by which NVIDIA's BLS model and ours name what they call.
CALLED_MODEL_PARAMETER = "tensorrt_llm_model_name"
DECOUPLED = ("model_transaction_policy", "decoupled")
BLS_NAME, ENGINE_NAME = "tensorrt_llm_bls", "tensorrt_llm"


def _routes_are_readable(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if not _is_gateway(model):
        return
    text = model.parameter("routes")
    if text is None:
        yield Problem(
            "the gateway has no parameter 'routes'; it does not know which engine to call", "publish the model again"
        )
        return
    try:
        routes = parse_routes(text, source="parameter")
        check_weights(model.name, routes.weights, published=list(routes.weights))
    except RepositoryError as error:
        line = model.parameter_line("routes")
        yield Problem(error.message, "set the weights again, or publish the model again", line=line)


def _routes_lead_to_engines(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    routes = _routes(model)
    for number, weight in routes.weights.items() if routes else ():
        severity = Severity.ERROR if weight > 0 else Severity.WARNING
        engine = engine_model_name(model.name, number)
        if engine not in repository.models:
            yield Problem(
                f"routes gives version {number} a weight of {weight:g}, but model {engine!r} is not in the repository",
                "publish that version, or take its weight away",
                line=model.parameter_line("routes"),
                severity=severity,
            )
        if not (serving_folder(model.folder, number) / SERVING_NAME).is_file():
            yield Problem(
                f"routes names version {number}, but {GATEWAY_VERSION}/versions/{number}/{SERVING_NAME} is missing: "
                f"the gateway has no tokenizer for it",
                "publish the model again",
                line=model.parameter_line("routes"),
                severity=severity,
            )


def _served_versions_are_readable(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for path in served_versions(model.folder).values():
        try:
            read_served_version(path)
        except RepositoryError as error:
            yield Problem(error.message, error.hint or "publish the model again", path=path)


def _decoupled_agrees(model: ModelView, repository: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    decoupled = model.config.model_transaction_policy.decoupled
    if _is_gateway(model) and not decoupled:
        yield Problem(
            "the gateway is not decoupled, so it cannot stream",
            "write model_transaction_policy { decoupled: true }",
            line=model.line(*DECOUPLED),
        )
    for name in _called_models(model):
        called = repository.models.get(name)
        if called is None or called.config is None:
            continue
        if called.config.model_transaction_policy.decoupled != decoupled:
            yield Problem(
                f"decoupled is {_shown(decoupled)} here and {_shown(not decoupled)} in {name!r}, which it calls; "
                f"streaming fails when the two differ",
                f"set model_transaction_policy {{ decoupled: true }} in both {model.name!r} and {name!r}",
                line=model.line(*DECOUPLED),
            )


def _shown(flag: bool) -> str:  # noqa: FBT001 - the value itself is what is shown
    return str(flag).lower()


def _is_gateway(model: ModelView) -> bool:
    served = model.folder.glob(f"{GATEWAY_VERSION}/versions/*/{SERVING_NAME}")
    return model.parameter("routes") is not None or any(served)


def _routes(model: ModelView) -> Routes | None:
    text = model.parameter("routes")
    try:
        return parse_routes(text, source="parameter") if text is not None else None
    except RepositoryError:
        return None  # reported by routes-broken


def _called_models(model: ModelView) -> list[str]:
    routes = _routes(model)
    if routes is not None:
        return [engine_model_name(model.name, number) for number in routes.weights]
    named = model.parameter(CALLED_MODEL_PARAMETER)
    if named:
        return [named]
    return [ENGINE_NAME] if model.name == BLS_NAME else []


GATEWAY_RULES = (
    ModelRule(
        "routes-broken",
        Severity.ERROR,
        "A gateway reads from its parameter routes how to split the traffic; without it, it cannot answer.",
        _routes_are_readable,
    ),
    ModelRule(
        "route-target",
        Severity.ERROR,
        "Each version that gets traffic needs its engine model and its tokenizer.",
        _routes_lead_to_engines,
    ),
    ModelRule(
        "serving-broken",
        Severity.ERROR,
        "A gateway cannot serve a version whose serving.json it cannot read, and no further version can be published.",
        _served_versions_are_readable,
        needs_config=False,
    ),
    ModelRule(
        "decoupled-mismatch",
        Severity.ERROR,
        "A model that streams what another one streams needs the same decoupled setting.",
        _decoupled_agrees,
    ),
)
