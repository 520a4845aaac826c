"""How much one engine takes: requests at a time and tokens per request."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tritonforge.spec.base import ForgeModel, Tokens, rule_broken

BatchSize = Annotated[int, Field(ge=1, le=65536)]


def _half_of_the_sequence(fields: dict[str, Any]) -> int:
    return max(1, min(2048, fields.get("max_seq_len", 4096) // 2))


class LimitsSpec(ForgeModel):
    """Limits of one engine version."""

    max_batch_size: BatchSize = 32
    """Most requests that are computed at the same time."""

    max_seq_len: Tokens = 4096
    """Most tokens in a prompt and its answer together; left out, fewer for a model that was trained for fewer."""

    max_input_len: Tokens = Field(default_factory=_half_of_the_sequence)
    """Most tokens in a prompt; below max_seq_len. Left out, half of it, at most 2048."""

    def fitted_to(self, max_positions: int) -> LimitsSpec:
        """These limits, with max_seq_len made smaller for a model of few positions if nobody asked for a value.

        Args:
            max_positions: Positions that the model was trained for.
        """
        if "max_seq_len" in self.model_fields_set or self.max_seq_len <= max_positions:
            return self
        given = self.model_dump(exclude_unset=True)
        return LimitsSpec.model_validate(given | {"max_seq_len": max_positions})

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
        return LimitsSpec.model_validate(limits.model_dump(exclude_unset=True) | self.model_dump(exclude_none=True))
