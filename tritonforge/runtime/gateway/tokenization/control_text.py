"""Keeps what a client writes in a chat from becoming control tokens. Pure.

A chat template is a string template: if the text of a message holds `<|im_end|>`, the rendered prompt holds it too, and
a tokenizer would read it as the end of the message. So such texts are replaced by placeholders before the template
runs, and encoded as ordinary text afterwards. A chat without them, which is nearly every chat, is rendered and encoded
as one string, exactly as transformers does it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..messages import Message


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a rendered prompt.

    Args:
        text: Its text.
        literal: True when it must be encoded as ordinary text although it looks like a control token.
    """

    text: str
    literal: bool


class ControlTexts:
    """The texts that a tokenizer reads as control tokens.

    Args:
        texts: For example `<|im_end|>` and `</s>`.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        # Longest first, so that of two texts of which one begins the other the longer is found.
        self._texts = sorted({text for text in texts if text}, key=lambda text: (-len(text), text))
        self._pattern = re.compile("|".join(re.escape(text) for text in self._texts)) if self._texts else None

    def hide(self, messages: Sequence[Message]) -> HiddenChat:
        """Replace every control text in every string of the messages, role names and tool calls included."""
        # Private-use brackets and a number that the client cannot guess.
        mark = secrets.token_hex(8)
        hidden = [self._hide(message, mark) for message in messages]
        return HiddenChat(messages=hidden, mark=mark, texts=tuple(self._texts))

    def _hide(self, value: Any, mark: str) -> Any:
        if isinstance(value, str):
            return (
                value if self._pattern is None else self._pattern.sub(lambda found: self._name(found[0], mark), value)
            )
        if isinstance(value, dict):
            return {self._hide(key, mark): self._hide(item, mark) for key, item in value.items()}
        if isinstance(value, list):
            return [self._hide(item, mark) for item in value]
        return value

    def _name(self, text: str, mark: str) -> str:
        return f"\ue000{mark}.{self._texts.index(text)}\ue001"


@dataclass(frozen=True, slots=True)
class HiddenChat:
    """A chat without control texts, and the way back.

    Args:
        messages: To be rendered.
        mark: What this chat's placeholders carry.
        texts: Control texts by the number in the placeholder.
    """

    messages: Sequence[Message]
    mark: str
    texts: tuple[str, ...]

    def split(self, rendered: str) -> list[Segment]:
        """The rendered prompt as template text and hidden texts in turn; one segment when nothing was hidden."""
        parts = re.split(f"\ue000{self.mark}\\.(\\d+)\ue001", rendered)
        segments = [
            Segment(self.texts[int(part)], literal=True) if index % 2 else Segment(part, literal=False)
            for index, part in enumerate(parts)
        ]
        return [segment for segment in segments if segment.text]
