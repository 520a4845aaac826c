"""How much one engine takes: requests at a time and tokens per request."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tritonforge.errors import SpecError
from tritonforge.spec.base import MAX_TOKENS, BrokenRule, ForgeModel, Tokens, refuse

BatchSize = Annotated[int, Field(ge=1, le=65536)]
_FEWEST_POSITIONS = 2  # a prompt and an answer of one token each
BeamWidth = Annotated[int, Field(ge=1, le=256)]
SequenceTokens = Annotated[int, Field(ge=_FEWEST_POSITIONS, le=MAX_TOKENS)]


def _half_of_the_sequence(fields: dict[str, Any]) -> int:
    max_seq_len: int = fields["max_seq_len"]
    return min(2048, max_seq_len // 2)


class LimitsSpec(ForgeModel):
    """Limits of one engine version."""

    max_batch_size: BatchSize = 32
    """Most requests that are computed at the same time."""

    max_seq_len: SequenceTokens = 4096
    """Most tokens in a prompt and its answer together; left out, fewer for a model that was trained for fewer."""

    max_input_len: Tokens = Field(default_factory=_half_of_the_sequence)
    """Most tokens in a prompt; below max_seq_len. Left out, half of it, at most 2048."""

    max_num_tokens: Tokens | None = None
    """Most tokens of all requests that one step computes; left out, what the engine takes by itself. Not for
    openvino, which has runtime.max_num_batched_tokens."""

    max_beam_width: BeamWidth = 1
    """Most beams of a request; 1 is no beam search, the only value but for tensorrt_llm."""

    def fitted_to(self, max_positions: int) -> LimitsSpec:
        """These limits, with max_seq_len made smaller for a model of few positions if nobody asked for a value.

        Args:
            max_positions: Positions that the model was trained for.

        Raises:
            SpecError: The longest prompt that was asked for does not fit into these positions, or nothing does.
        """
        if "max_seq_len" in self.model_fields_set or self.max_seq_len <= max_positions:
            return self
        if max_positions < _FEWEST_POSITIONS:
            raise SpecError(
                f"the model was trained for {max_positions} positions; expected at least {_FEWEST_POSITIONS}",
                hint="a prompt and an answer have a token each: see max_position_embeddings in config.json",
            )
        given = self.model_dump(exclude_unset=True)
        if given.get("max_input_len", 0) >= max_positions:
            raise SpecError(
                f"max_input_len is {self.max_input_len}; expected less than {max_positions}, the positions that the "
                f"model was trained for",
                hint="make it smaller, or write max_seq_len as well if linear rotary scaling takes the model further",
            )
        return LimitsSpec.model_validate(given | {"max_seq_len": max_positions})

    @model_validator(mode="after")
    def _leaves_room_for_an_answer(self) -> Self:
        if self.max_input_len >= self.max_seq_len:
            expected = f"less than max_seq_len ({self.max_seq_len}), which counts the prompt and the answer"
            refuse([BrokenRule(f"is {self.max_input_len}; expected {expected}", at=("max_input_len",))])
        return self

    @model_validator(mode="after")
    def _step_holds_a_token_of_every_request(self) -> Self:
        fewest = self.max_batch_size * self.max_beam_width
        if self.max_num_tokens is not None and self.max_num_tokens < fewest:
            counted = f"max_batch_size {self.max_batch_size} x max_beam_width {self.max_beam_width}"
            problem = f"is {self.max_num_tokens}; expected at least {fewest}, a token for every request ({counted})"
            refuse([BrokenRule(problem, at=("max_num_tokens",))])
        return self


class LimitsOverrideSpec(ForgeModel):
    """Limits in which one version differs from its model; what is left out stays as the model says."""

    max_batch_size: BatchSize | None = None
    """Most requests that are computed at the same time."""

    max_input_len: Tokens | None = None
    """Most tokens in a prompt; below max_seq_len."""

    max_seq_len: SequenceTokens | None = None
    """Most tokens in a prompt and its answer together."""

    max_num_tokens: Tokens | None = None
    """Most tokens of all requests that one step computes."""

    max_beam_width: BeamWidth | None = None
    """Most beams of a request."""

    def applied_to(self, limits: LimitsSpec) -> LimitsSpec:
        """The model's limits with this version's in their place.

        Raises:
            pydantic.ValidationError: The two together contradict each other.
        """
        return LimitsSpec.model_validate(limits.model_dump(exclude_unset=True) | self.model_dump(exclude_none=True))
