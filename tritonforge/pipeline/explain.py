"""What the build cache has of what a version is made from, and what differs from the nearest it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tritonforge.pipeline.cache import BuildCache
from tritonforge.pipeline.cache_key import CacheKey
from tritonforge.pipeline.plan import VersionPlan


@dataclass(frozen=True, slots=True)
class CacheLook:
    """One thing that a build needs, and the cache.

    Args:
        label: The version that needs it.
        noun: What it is.
        key: Its name in the cache.
        hit: Whether it is there.
        reason: Why it is there or not, in one line.
        nearest: The version that the most similar thing there was made for; None when it is there, or nothing is.
        changes: What differs from the nearest that is there, one phrase each.
    """

    label: str
    noun: str
    key: str
    hit: bool
    reason: str
    nearest: str | None
    changes: tuple[str, ...]


def explain(plan: VersionPlan, cache: BuildCache) -> tuple[CacheLook, ...]:
    """What a version needs, last step first, as far as it is needed: none for one that is published already.

    The files of an entry are read only when it is used, so what is a hit here can be found damaged then.
    """
    return tuple(_needed(plan, cache))


def _needed(plan: VersionPlan, cache: BuildCache) -> Iterator[CacheLook]:
    recipe = plan.recipe
    if recipe is None or recipe.engine_key is None:
        return
    engine = _look(plan, recipe.engine_key, cache)
    yield engine
    if not engine.hit and recipe.conversion is not None:
        yield _look(plan, recipe.conversion.key, cache)


def _look(plan: VersionPlan, key: CacheKey, cache: BuildCache) -> CacheLook:
    forecast = cache.forecast(key)
    return CacheLook(
        label=plan.label,
        noun=key.noun,
        key=key.digest,
        hit=forecast.entry is not None,
        reason=forecast.reason,
        nearest=None if forecast.nearest is None else forecast.nearest.made_for,
        changes=forecast.changes,
    )
