"""How much one engine takes: requests at a time and tokens per request."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from tritonforge.spec.base import ForgeModel, Tokens, rule_broken

BatchSize = Annotated[int, Field(ge=1, le=65536)]


class LimitsSpec(ForgeModel):
    """Limits of one engine version."""

    max_batch_size: BatchSize = 32
    """Most requests that are computed at the same time."""

    max_input_len: Tokens = 2048
    """Most tokens in a prompt; below max_seq_len."""

    max_seq_len: Tokens = 4096
    """Most tokens in a prompt and its answer together."""

    @model_validator(mode="after")
    def _leaves_room_for_an_answer(self) -> Self:
        if self.max_input_len >= self.max_seq_len:
            raise rule_broken(
                f"is {self.max_input_len}; expected less than max_seq_len ({self.max_seq_len}), "
                f"which counts the prompt and the answer",
                at=("max_input_len",),
            )
        return self


class LimitsOverrideSpec(ForgeModel):
    """Limits in which one version differs from its model; what is left out stays as the model says."""

    max_batch_size: BatchSize | None = None
    """Most requests that are computed at the same time."""

    max_input_len: Tokens | None = None
    """Most tokens in a prompt; below max_seq_len."""

    max_seq_len: Tokens | None = None
    """Most tokens in a prompt and its answer together."""

    def applied_to(self, limits: LimitsSpec) -> LimitsSpec:
        """The model's limits with this version's in their place.

        Raises:
            pydantic.ValidationError: The two together contradict each other.
        """
        return LimitsSpec.model_validate(limits.model_dump() | self.model_dump(exclude_none=True))
