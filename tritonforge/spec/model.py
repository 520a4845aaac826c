"""One model under its public name: a checkpoint, the versions compiled from it, and how they share the traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from tritonforge.spec.base import BrokenRule, ForgeModel, ModelName, VersionNumber, refuse
from tritonforge.spec.checkpoint import CheckpointRef
from tritonforge.spec.engine import EngineSpec
from tritonforge.spec.engine_limits import broken_limits
from tritonforge.spec.layout import ENSEMBLE, GATEWAY, Layout, broken_ensemble
from tritonforge.spec.limits import LimitsOverrideSpec, LimitsSpec
from tritonforge.spec.serving import ServingOverrideSpec, ServingSpec
from tritonforge.spec.tensorrt_llm_serving import broken_tensorrt_llm_serving
from tritonforge.spec.tests import TestSpec
from tritonforge.spec.text_serving import broken_text_serving

SERVING_CHECKS = (broken_text_serving, broken_tensorrt_llm_serving)
VERSION_KEYS = {"propertyNames": {"pattern": "^[1-9][0-9]*$"}}


@dataclass(frozen=True, slots=True)
class ResolvedVersion:
    """One version with everything it inherits from its model filled in.

    Args:
        model_name: Public name of the model.
        number: Version number, from 1.
        engine: How it is compiled.
        checkpoint: Reference as written in the specification; relative paths are relative to its folder.
        limits: Its limits.
        serving: How Triton runs it; `default_max_tokens` leaves room for at least one token of prompt.
        layout: Models in front of its engine.
    """

    model_name: str
    number: int
    engine: EngineSpec
    checkpoint: str
    limits: LimitsSpec
    serving: ServingSpec
    layout: Layout = GATEWAY


class VersionSpec(ForgeModel):
    """One numbered version of a model."""

    engine: EngineSpec
    """Which engine computes the tokens, and how it is compiled."""

    checkpoint: CheckpointRef | None = None
    """Checkpoint of this version, when it is not the model's."""

    limits: LimitsOverrideSpec | None = None
    """Limits in which this version differs from its model."""

    serving: ServingOverrideSpec | None = None
    """Serving settings in which this version differs from its model."""


Versions = Annotated[dict[VersionNumber, VersionSpec], Field(min_length=1, json_schema_extra=VERSION_KEYS)]
MAX_WEIGHT = 1e9  # far above any share, and far below where a sum of weights loses its precision or its measure
Weight = Annotated[float, Field(ge=0, le=MAX_WEIGHT)]


def _all_to_the_lowest(fields: dict[str, Any]) -> dict[int, float]:
    return {min(fields["versions"]): 100.0}


class ModelSpec(ForgeModel):
    """One model under its public name."""

    name: ModelName
    """Name that clients ask for; version N is served by the Triton model <name>_engine_v<N>."""

    checkpoint: CheckpointRef
    """Folder in Hugging Face form, or a .gguf file; relative to this file."""

    layout: Layout = GATEWAY
    """Models in front of the engines: our gateway, or an ensemble with NVIDIA's tensors, which cannot split traffic."""

    versions: Versions
    """Versions by their number."""

    traffic: Annotated[dict[VersionNumber, Weight], Field(json_schema_extra=VERSION_KEYS)] = Field(
        default_factory=_all_to_the_lowest
    )
    """Share of the traffic by version number, as weights; left out, the lowest version gets everything."""

    limits: LimitsSpec = LimitsSpec()
    """How much an engine takes."""

    serving: ServingSpec = ServingSpec()
    """How Triton runs the engines."""

    tests: Annotated[tuple[TestSpec, ...], Field(strict=False)] = ()
    """Questions that a version must answer before it gets any traffic."""

    @model_validator(mode="after")
    def _versions_fit_together(self) -> Self:
        broken = list(_broken_traffic(self.traffic, self.versions))
        if self.layout == ENSEMBLE:
            kinds = {number: version.engine.kind for number, version in self.versions.items()}
            broken.extend(broken_ensemble(kinds, self.traffic, self.tests))
        for number in self.versions:
            broken.extend(_broken_version(self, number))
        refuse({rule.at: rule for rule in broken}.values())  # what versions inherit is wrong once, not once a version
        return self

    def resolved(self, number: int) -> ResolvedVersion:
        """The version with everything it inherits filled in.

        Args:
            number: A key of `versions`.

        Raises:
            KeyError: There is no such version.
        """
        version = self.versions[number]
        limits = self.limits if version.limits is None else version.limits.applied_to(self.limits)
        serving = self.serving if version.serving is None else version.serving.applied_to(self.serving)
        room = limits.max_seq_len - 1
        if serving.default_max_tokens > room:
            serving = serving.model_copy(update={"default_max_tokens": room})
        return ResolvedVersion(
            model_name=self.name,
            number=number,
            engine=version.engine,
            checkpoint=self.checkpoint if version.checkpoint is None else version.checkpoint,
            limits=limits,
            serving=serving,
            layout=self.layout,
        )


def _broken_traffic(traffic: Mapping[int, float], versions: Mapping[int, VersionSpec]) -> Iterator[BrokenRule]:
    known = ", ".join(str(number) for number in sorted(versions))
    for number in traffic:
        if number not in versions:
            yield BrokenRule(f"there is no version {number}; expected one of {known}", at=("traffic", number))
    if not sum(traffic.values()) > 0:
        yield BrokenRule("has no weight above 0; expected at least one", at=("traffic",))


def _broken_version(model: ModelSpec, number: int) -> Iterator[BrokenRule]:
    try:
        resolved = model.resolved(number)
    except ValidationError as error:
        problem = f"contradicts the model's limits: {error.errors()[0]['msg']}"
        yield BrokenRule(problem, at=("versions", number, "limits"))
        return
    for key, problem in (broken for check in SERVING_CHECKS for broken in check(resolved.engine, resolved.serving)):
        yield BrokenRule(f"{problem} (version {number})", at=_owner(model, number, key))
    for key, problem in broken_limits(resolved.engine, resolved.limits):
        yield BrokenRule(f"{problem} (version {number})", at=(*_limits_owner(model, number, key), key))
    batching, most = resolved.serving.dynamic_batching, resolved.limits.max_batch_size
    sizes = batching.preferred_batch_size if batching is not None else ()
    if sizes and max(sizes) > most:
        place = (*_owner(model, number, "dynamic_batching"), "preferred_batch_size")
        yield BrokenRule(f"holds {max(sizes)}; expected at most max_batch_size ({most} in version {number})", at=place)
    owner = _owner(model, number, "default_max_tokens")
    serving = model.versions[number].serving if owner[0] == "versions" else model.serving
    asked = serving.default_max_tokens if serving is not None and owner[-1] in serving.model_fields_set else None
    if asked is not None and asked >= resolved.limits.max_seq_len:
        expected = f"less than max_seq_len ({resolved.limits.max_seq_len} in version {number})"
        yield BrokenRule(f"is {asked}; expected {expected}", at=owner)


def _owner(model: ModelSpec, number: int, key: str) -> tuple[str | int, ...]:
    """Where a version's serving key is written: at the version, or at the model."""
    own = model.versions[number].serving
    if own is not None and getattr(own, key) is not None:
        return ("versions", number, "serving", key)
    return ("serving", key)


def _limits_owner(model: ModelSpec, number: int, key: str) -> tuple[str | int, ...]:
    """Where a version's limit is written: at the version, or at the model."""
    own = model.versions[number].limits
    return ("versions", number, "limits") if own is not None and key in own.model_fields_set else ("limits",)
