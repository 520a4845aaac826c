"""How a gateway splits its traffic: the value of its `routes` parameter. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from tritonforge.errors import RepositoryError
from tritonforge.spec.model import MAX_WEIGHT


@dataclass(frozen=True, slots=True)
class Routes:
    """The split of a model's traffic over its engine versions.

    Args:
        weights: Weight by version number; each at least 0, their sum above 0. Shares are weights over their sum.
        salt: Part of the hash that keeps a sticky key on its version.
        experiment: Name of the experiment under way, if any.
        shadow: Settings of a shadow version, kept as they are.
    """

    weights: Mapping[int, float]
    salt: str
    experiment: str | None = None
    shadow: Mapping[str, object] | None = field(default=None)

    def with_weights(self, weights: Mapping[int, float]) -> Routes:
        """The same routes with other weights."""
        return replace(self, weights=dict(weights))

    @property
    def shares(self) -> dict[int, float]:
        """Fraction of the traffic (0 to 1) by version number."""
        total = sum(self.weights.values())
        return {number: weight / total for number, weight in sorted(self.weights.items())}


def check_weights(model: str, weights: Mapping[int, float], *, published: Collection[int]) -> None:
    """Refuse weights that cannot route a request.

    Raises:
        RepositoryError: A version is unknown, a weight is negative, too large or not a number, or all are zero.
    """
    known = ", ".join(str(number) for number in sorted(published)) or "none"
    for number, weight in weights.items():
        if number not in published:
            raise RepositoryError(
                f"{model}: there is no version {number}; published versions: {known}",
                hint="build and publish the version first",
            )
        if not 0 <= weight <= MAX_WEIGHT:
            expected = f"expected a number from 0 to {MAX_WEIGHT:g}"
            raise RepositoryError(f"{model}: weight of version {number} is {weight}; {expected}")
    if not sum(weights.values()) > 0:
        raise RepositoryError(f"{model}: all weights are 0; expected at least one above 0")


def routes_text(routes: Routes) -> str:
    """The routes as JSON text, versions in order."""
    weights = {str(number): _plain(weight) for number, weight in sorted(routes.weights.items())}
    shadow = None if routes.shadow is None else dict(routes.shadow)
    value = {"weights": weights, "salt": routes.salt, "experiment": routes.experiment, "shadow": shadow}
    return json.dumps(value, ensure_ascii=False)


def parse_routes(text: str, *, source: str) -> Routes:
    """Read routes from JSON text; keys that are not known are ignored.

    Args:
        text: The parameter's value.
        source: Where it comes from, for the message.

    Raises:
        RepositoryError: The text is not JSON, or has no usable weights.
    """
    try:
        value = json.loads(text)
        weights = {int(number): float(weight) for number, weight in value["weights"].items()}
        salt = str(value["salt"])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise RepositoryError(
            f"{source}: routes is {text!r}; expected JSON with weights by version number and a salt ({error})"
        ) from error
    return Routes(weights, salt, value.get("experiment"), value.get("shadow"))


def _plain(weight: float) -> int | float:
    return int(weight) if float(weight).is_integer() else float(weight)
