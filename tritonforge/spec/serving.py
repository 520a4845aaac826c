"""How Triton runs an engine: instances, batching, queue, and what a request gets that asks for nothing special."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tritonforge.spec.base import BrokenRule, Count, ForgeModel, Microseconds, Tokens, refuse

GpuId = Annotated[int, Field(ge=0, le=1023)]
# Lists are tuples inside, so that the specification is frozen all the way down; YAML lists are taken as they are.
GpuIds = Annotated[tuple[GpuId, ...], Field(strict=False)]
BatchSizes = Annotated[tuple[Annotated[int, Field(ge=1, le=65536)], ...], Field(strict=False)]


class InstanceGroupSpec(ForgeModel):
    """Copies of an engine that run side by side."""

    kind: Literal["KIND_CPU", "KIND_GPU", "KIND_AUTO", "KIND_MODEL"] = "KIND_CPU"
    """Where the copies run. KIND_MODEL leaves it to the backend."""

    count: Count = 1
    """Number of copies; per GPU for KIND_GPU."""

    gpus: GpuIds = ()
    """GPU numbers; empty means all. Only for KIND_GPU and KIND_AUTO."""

    @model_validator(mode="after")
    def _gpus_fit_the_kind(self) -> Self:
        gpus, broken = list(self.gpus), []
        if gpus and self.kind in {"KIND_CPU", "KIND_MODEL"}:
            broken.append(f"is {gpus} while kind is {self.kind}; expected kind: KIND_GPU, or no gpus")
        if len(set(gpus)) != len(gpus):
            broken.append(f"is {gpus}; expected each number once")
        refuse(BrokenRule(problem, at=("gpus",)) for problem in broken)
        return self


class QueuePolicySpec(ForgeModel):
    """What happens to requests that wait."""

    timeout_action: Literal["REJECT", "DELAY"] = "REJECT"
    """What happens to a request that waited too long: refuse it, or let all others go first."""

    default_timeout_microseconds: Microseconds = 0
    """Longest wait in microseconds; 0 means no limit."""

    allow_timeout_override: bool = False
    """Whether a request may ask for a shorter wait."""

    max_queue_size: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    """Most requests that wait; 0 means no limit."""


class DynamicBatchingSpec(ForgeModel):
    """Triton's dynamic batcher."""

    preferred_batch_size: BatchSizes = ()
    """Batch sizes to wait for; empty means max_batch_size."""

    max_queue_delay_microseconds: Microseconds = 0
    """Longest time in microseconds that a request waits for others to join its batch."""

    preserve_ordering: bool = False
    """Answer requests in the order in which they came."""

    default_queue_policy: QueuePolicySpec | None = None
    """What happens to requests that wait; left out, they wait without limit."""

    @model_validator(mode="after")
    def _order_can_be_kept(self) -> Self:
        policy = self.default_queue_policy
        if self.preserve_ordering and policy is not None and policy.timeout_action == "DELAY":
            problem = (
                "is true while default_queue_policy.timeout_action is DELAY, which changes the order; "
                "expected timeout_action: REJECT, or preserve_ordering: false"
            )
            refuse([BrokenRule(problem, at=("preserve_ordering",))])
        return self


InstanceGroups = Annotated[tuple[InstanceGroupSpec, ...], Field(strict=False, min_length=1)]


class ServingSpec(ForgeModel):
    """How Triton runs an engine version."""

    instance_group: InstanceGroups = (InstanceGroupSpec(),)
    """Copies of the engine, group by group."""

    dynamic_batching: DynamicBatchingSpec | None = None
    """Triton's dynamic batcher; left out, requests go to the engine at once, which batches them in flight."""

    default_max_tokens: Tokens = 256
    """Tokens of an answer when the request does not say; at most max_seq_len - 1."""


class ServingOverrideSpec(ForgeModel):
    """Serving settings in which one version differs from its model; what is left out stays as the model says."""

    instance_group: InstanceGroups | None = None
    """Copies of the engine, group by group."""

    dynamic_batching: DynamicBatchingSpec | None = None
    """Triton's dynamic batcher; null turns it off for this version."""

    default_max_tokens: Tokens | None = None
    """Tokens of an answer when the request does not say; at most max_seq_len - 1."""

    def applied_to(self, serving: ServingSpec) -> ServingSpec:
        """The model's settings with this version's in their place.

        A null ``dynamic_batching`` counts when it was written: it turns the model's batcher off.
        """
        changed = {name: getattr(self, name) for name in self.model_fields_set}
        kept = {name: value for name, value in changed.items() if value is not None or name == "dynamic_batching"}
        return serving.model_copy(update=kept)
