"""Reading and changing how a published model splits its traffic. Only the gateway's config.pbtxt is touched."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tritonforge.errors import ConfigInvalid, RepositoryError, did_you_mean
from tritonforge.repository.files import write_text
from tritonforge.repository.layout import CONFIG_NAME, model_names, served_versions
from tritonforge.repository.pbtxt import parameter_of, parse_config, quoted, read_config
from tritonforge.repository.publish import DEFAULT_WAIT_S, Transaction
from tritonforge.repository.render_ensemble import repointed
from tritonforge.repository.routes import Routes, check_weights, parse_routes, routes_text

ROUTES_PARAMETER = "routes"
# The parameter up to its value: one literal in either kind of quotes, in which a backslash escapes what follows.
ROUTES_LITERAL = re.compile(
    r"""(key\s*:\s*["']routes["']\s*,?\s*value\s*:?\s*\{\s*string_value\s*:\s*)("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
)


def read_routes(repository: Path, model: str) -> Routes:
    """How a model splits its traffic, as its gateway's config on disk says.

    Raises:
        RepositoryError: There is no such model, or its config has no readable routes.
    """
    file = _gateway_config(repository, model)
    text = parameter_of(read_config(file), ROUTES_PARAMETER)
    if text is None:
        raise ConfigInvalid(file, "has no parameter 'routes'", hint="build and publish the model again")
    return parse_routes(text, source=str(file))


def set_routes(
    repository: Path,
    model: str,
    weights: Mapping[int, float],
    *,
    wait_s: float = DEFAULT_WAIT_S,
    apply: Callable[[], None] | None = None,
    undo: Callable[[], None] | None = None,
) -> Routes:
    """Change a model's weights on disk; comments and everything else in a gateway's config stay as they are.

    An ensemble has its steps named anew: they are those of the version that has all the traffic.

    Args:
        repository: The model repository.
        model: Public name of the model.
        weights: The new weights by version number; versions that are left out get nothing.
        wait_s: Seconds to wait for another writer.
        apply: Called afterwards, to load the gateway again on a running server. When it raises, the old weights are
            put back.
        undo: Called after the old weights were put back, to load the gateway once more.

    Returns:
        The new routes.

    Raises:
        RepositoryError: There is no such model or version, a weight is negative, all are zero, or an ensemble is to
            share its traffic out.
        RepositoryLocked: Another process is still changing the repository after `wait_s`.
        PublishFailed: The config could not be written, or `apply` failed; the weights are as before.
    """
    file = _gateway_config(repository, model)
    shown = ", ".join(f"{number}: {weight:g}" for number, weight in sorted(weights.items()))
    with Transaction(repository, purpose=f"traffic of {model} to {{{shown}}}", wait_s=wait_s) as transaction:
        check_weights(model, weights, published=published_versions(repository, model))
        routes = read_routes(repository, model).with_weights(weights)
        staged = transaction.staging / model / CONFIG_NAME
        if is_ensemble(repository, model):
            write_text(staged, repointed(model, routes, repository=repository))
        else:
            write_text(staged, with_routes(file.read_text(encoding="utf-8"), routes, file=file))
        transaction.publish([staged], apply=apply, undo=undo)
    return routes


def is_ensemble(repository: Path, model: str) -> bool:
    """Whether a published model has the layout `ensemble`.

    Raises:
        RepositoryError: There is no such model, or its config cannot be read.
    """
    platform: str = read_config(_gateway_config(repository, model)).platform
    return platform == "ensemble"


def published_versions(repository: Path, model: str) -> list[int]:
    """Version numbers that a model's gateway can route to, lowest first."""
    return list(served_versions(repository / model))


def with_routes(text: str, routes: Routes, *, file: Path) -> str:
    """A gateway's config with other routes, otherwise unchanged to the byte. Pure.

    Args:
        text: The config.
        routes: The new routes.
        file: Its path, for messages.

    Raises:
        ConfigInvalid: The parameter is not written in a form that can be replaced safely.
    """
    literal = quoted(routes_text(routes))
    changed, count = ROUTES_LITERAL.subn(lambda match: match[1] + literal, text)
    wanted = parse_config(text, file=file)
    wanted.parameters[ROUTES_PARAMETER].string_value = routes_text(routes)
    if count != 1 or parse_config(changed, file=file) != wanted:
        raise ConfigInvalid(
            file,
            "the parameter 'routes' was edited into a form that cannot be changed automatically",
            hint="write it as: parameters { key: \"routes\" value { string_value: '…' } }, or publish the model again",
        )
    return changed


def _gateway_config(repository: Path, model: str) -> Path:
    file = repository / model / CONFIG_NAME
    known = model_names(repository)
    if model not in known:
        hint = did_you_mean(model, known) or f"published models: {', '.join(known) or 'none'}"
        raise RepositoryError(f"{repository}: there is no published model {model!r}", hint=hint)
    return file
