"""What the gateway needs of a tokenizer, whatever files it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...tensors import RequestRejected
from ..messages import Message
from .control_text import Segment
from .vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class ReplyStyle:
    """How the reference implementation of the checkpoint shows a chat reply.

    Args:
        drops_first_space: One leading space, which sentencepiece puts before the first word, is not part of the reply.
        trims_edges: White space at both ends is not part of the reply (ChatGLM, whose replies begin with a newline).
        placeholder: A text that the model writes, and what is shown for it; None for none.
    """

    drops_first_space: bool = False
    trims_edges: bool = False
    placeholder: tuple[str, str] | None = None


class Tokenizer(Protocol):
    """Text to ids. Ids to text is the work of `detokenize`, which needs only the vocabulary.

    Several threads may encode at the same time.
    """

    @property
    def vocabulary(self) -> Vocabulary:
        """What each id stands for."""

    @property
    def reply_style(self) -> ReplyStyle:
        """How chat replies are shown."""

    def encode_text(self, text: str) -> list[int]:
        """Ids of a completion prompt, with the special tokens that the reference tokenizer adds by default."""

    def encode_bare(self, text: str) -> list[int]:
        """Ids of a completion prompt that brings its special tokens along: none are added."""

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Ids of a chat up to where the assistant's next reply begins.

        Raises:
            RequestRejected: The chat cannot be rendered: no template, or the template refuses it.
        """

    @property
    def control_texts(self) -> Sequence[str]:
        """Texts that are read as control tokens in a completion prompt; none when a prompt's text cannot hold any."""

    def render_chat(self, messages: Sequence[Message]) -> list[Segment]:
        """The same chat as text, for an engine that tokenises by itself.

        Raises:
            RequestRejected: As `encode_chat`, or its prompt is put together from tokens that no text stands for.
        """

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        """Ids of a rendered chat, as `encode_chat` gives them."""

    def encode_word(self, word: str) -> list[int]:
        """Ids of a piece of text with no special tokens, as it appears inside a longer text."""


class TokensOnly:
    """For tokenizers whose chats are put together token by token: no text stands for such a prompt."""

    control_texts: Sequence[str] = ()

    def render_chat(self, messages: Sequence[Message]) -> list[Segment]:  # noqa: ARG002 - a tokenizer's signature
        """Refuse. Raises RequestRejected always."""
        raise RequestRejected(
            "messages cannot be given to this engine version: it takes text, and this checkpoint's chats begin with "
            "tokens that no text stands for; expected text_input"
        )

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        """Refuse: nothing is ever rendered. Raises RequestRejected always."""
        raise RequestRejected(f"messages cannot be read from its text of {len(segments)} segments")
