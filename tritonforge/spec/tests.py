"""Questions that a version must answer before it gets any traffic."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tritonforge.spec.base import BrokenRule, ForgeModel, Tokens, refuse

Text = Annotated[str, Field(min_length=1)]


class MessageSpec(ForgeModel):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    """Who speaks."""

    content: Text
    """What is said."""


class TestSpec(ForgeModel):
    """One question and what its answer must be; without `contains` and `equals` any answer but an empty one will do."""

    __test__: ClassVar[bool] = False  # not a test class, whatever its name looks like to pytest

    prompt: Text | None = None
    """Text that the model continues; or give messages."""

    messages: Annotated[tuple[MessageSpec, ...], Field(strict=False, min_length=1)] | None = None
    """Conversation that the model continues, through the checkpoint's chat template; or give prompt."""

    max_tokens: Tokens = 16
    """Most tokens of the answer."""

    temperature: Annotated[float, Field(ge=0, le=100)] = 0.0
    """Randomness of the choice; 0 always takes the likeliest token."""

    random_seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    """Seed of the random choice."""

    contains: Text | None = None
    """Text that the answer must contain."""

    equals: Text | None = None
    """Text that the answer must be, but for white space at both ends."""

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        broken = []
        if (self.prompt is None) == (self.messages is None):
            found = "neither" if self.prompt is None else "both"
            broken.append(BrokenRule(f"has {found} of prompt and messages; expected one of the two", at=()))
        if self.contains is not None and self.equals is not None:
            broken.append(BrokenRule("stands beside contains; expected one of the two", at=("equals",)))
        refuse(broken)
        return self

    def problem_with(self, answer: str) -> str | None:
        """What is wrong with an answer, or None when it will do."""
        if self.contains is not None and self.contains not in answer:
            return f"the answer is {answer!r}; expected it to contain {self.contains!r}"
        if self.equals is not None and self.equals.strip() != answer.strip():
            return f"the answer is {answer!r}; expected {self.equals!r}"
        if not answer.strip():
            return "the answer is empty"
        return None
