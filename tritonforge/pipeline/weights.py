"""How traffic is split after a build. The spec's weights are the first ones; from then on those in force count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from tritonforge.errors import BuildError, RepositoryError
from tritonforge.repository.traffic import published_versions, read_routes
from tritonforge.spec.model import ModelSpec


def weights_in_force(repository: Path, model: str) -> Mapping[int, float] | None:
    """Weight by version of a published model; None when there is none of that name.

    Raises:
        RepositoryError: The model is there, but its weights cannot be read.
    """
    numbers = published_versions(repository, model)
    if not numbers:
        return None
    weights = read_routes(repository, model).weights
    return {number: weights.get(number, 0.0) for number in numbers}


def weights_to_keep(
    repository: Path, model: str, numbers: Collection[int], *, replace: bool
) -> Mapping[int, float] | None:
    """Weight now of each of `numbers`, 0 for new ones; None when the spec's weights are to count.

    A version that was damaged may be one that the model does not know any more, but its weight is still there.

    Args:
        repository: The model repository.
        model: Public name of the model.
        numbers: Versions that will be there.
        replace: Whether weights that cannot be read may be given up.

    Raises:
        RepositoryError: The model is there, but its weights cannot be read.
    """
    if not published_versions(repository, model):
        return None
    try:
        weights = read_routes(repository, model).weights
    except RepositoryError as error:
        if replace:
            return None
        raise RepositoryError(
            error.message, hint="mend the file, or pass --replace to write it anew with the spec's traffic"
        ) from error
    return {number: weights.get(number, 0.0) for number in sorted(numbers)}


def weights_after(
    model: ModelSpec, in_force: Mapping[int, float] | None, new: Collection[int], *, from_spec: bool
) -> dict[int, float]:
    """Weight by version once `new` is published too. Pure.

    A published model keeps the weights that are in force, and new versions get nothing: traffic is moved on purpose.
    Where none of the versions that are left has any, the spec's count again.

    Args:
        model: The spec, whose traffic a model that is not published yet starts with.
        in_force: Weights of now; None when the model is not published.
        new: Versions that are going to be published.
        from_spec: Whether a published model is to have the spec's weights as well.

    Raises:
        BuildError: The spec's weights give nothing to the versions that will be there.
    """
    numbers = sorted({*(in_force or ()), *new})
    if in_force is not None and sum(in_force.values()) > 0 and not from_spec:
        return {number: in_force.get(number, 0.0) for number in numbers}
    weights = {number: float(model.traffic.get(number, 0.0)) for number in numbers}
    if not sum(weights.values()) > 0:
        raise BuildError(
            f"{model.name}: the spec's traffic ({shown(model.traffic)}) gives nothing to the versions that are built "
            f"or published: {', '.join(map(str, numbers))}",
            hint="build all versions, or give one of them a weight",
        )
    return weights


def difference(model: ModelSpec, weights: Mapping[int, float]) -> str | None:
    """One line that says how the spec's traffic differs from the weights in force; None when it does not. Pure.

    Shares are compared, so 1: 95, 2: 5 is the same as 1: 190, 2: 10. A spec without traffic differs from nothing.
    """
    if "traffic" not in model.model_fields_set or _shares(model.traffic) == _shares(weights):
        return None
    return (
        f"{model.name}: traffic stays {shown(weights)}; the spec says {shown(model.traffic)} "
        f"(`tritonforge build --traffic` applies it)"
    )


def shown(weights: Mapping[int, float]) -> str:
    """Weights as forge.yaml has them: ``1: 95, 2: 5``."""
    return ", ".join(f"{number}: {weight:g}" for number, weight in sorted(weights.items()))


def _shares(weights: Mapping[int, float]) -> dict[int, float]:
    total = sum(weights.values())
    return {number: round(weight / total, 9) for number, weight in weights.items() if weight > 0}
