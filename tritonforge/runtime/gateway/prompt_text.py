"""The prompt as text, for engines that tokenise by themselves. Pure.

Such an engine reads control tokens in the text by their names and puts the checkpoint's usual ones in front. A rendered
chat has them in front already: sent as it is, it would begin twice. And what a client wrote can no longer be kept apart
from what the template wrote. So the text is chosen by what the engine's tokenizer, which is the checkpoint's and so
ours, will make of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..tensors import RequestRejected
from .messages import Message
from .tokenization.base import Tokenizer
from .tokenization.vocabulary import PieceKind


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """What an engine gets that takes text.

    Args:
        text: The prompt.
        token_ids: What the engine makes of it.
    """

    text: str
    token_ids: list[int]


def chat_text(messages: Sequence[Message], tokenizer: Tokenizer) -> TextPrompt:
    """The rendered chat, without what the engine puts in front of it again.

    A template that writes no begin token gets the one that the engine adds: nothing can keep it from doing so.

    Raises:
        RequestRejected: The chat cannot be rendered, or the engine would read other control tokens than are meant.
    """
    segments = tokenizer.render_chat(messages)
    written = next((segment.text for segment in segments if segment.literal), None)
    if written is not None:
        raise RequestRejected(
            f"messages has the text {written!r}, which is the name of a control token, and this engine version reads "
            f"it as one; expected a chat without it"
        )
    rendered = "".join(segment.text for segment in segments)
    meant = tokenizer.encode_segments(segments)
    candidates = [TextPrompt(text, tokenizer.encode_text(text)) for text in _candidates(rendered, tokenizer)]
    for candidate in candidates:
        if candidate.token_ids == meant:
            return candidate
    # Words may be cut otherwise, for example at a space that one tokenizer class puts in front; controls may not.
    added = _controls(tokenizer.encode_text(""), tokenizer)
    for controls in (_controls(meant, tokenizer), added + _controls(meant, tokenizer)):
        for candidate in candidates:
            if _controls(candidate.token_ids, tokenizer) == controls:
                return candidate
    raise RequestRejected(
        "messages cannot be given to this engine version: it takes text, and its tokenizer would read other control "
        "tokens than the chat template writes; expected text_input"
    )


def _candidates(rendered: str, tokenizer: Tokenizer) -> Iterator[str]:
    """The text without a control token at its start, for each that it may start with, and the text as it is."""
    for control in tokenizer.control_texts:
        if control and rendered.startswith(control):
            yield rendered[len(control) :]
    yield rendered


def _controls(token_ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    return [token_id for token_id in token_ids if tokenizer.vocabulary[token_id].kind is PieceKind.SILENT]
