"""What each token id stands for when text is made of ids. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass


class PieceKind(enum.Enum):
    """How a token takes part in the byte stream of the text."""

    TEXT = enum.auto()
    """Bytes of text, possibly part of a character; may begin with the space that sentencepiece writes as `▁`."""
    BYTE = enum.auto()
    """One byte of a character that the vocabulary lacks."""
    LITERAL = enum.auto()
    """Text of its own, never joined with its neighbours: added tokens that are shown, sentencepiece's unknown."""
    SILENT = enum.auto()
    """Shows nothing and ends a sequence of bytes: control tokens, special tokens, padding rows of the vocabulary."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One token.

    Args:
        kind: How it takes part in the text.
        text: Its bytes; empty for a silent one.
    """

    kind: PieceKind
    text: bytes = b""


SILENT = Piece(PieceKind.SILENT)


class Vocabulary:
    """Pieces by token id; an id that the tokenizer does not know is silent.

    Args:
        pieces: Piece of id 0, 1, 2, …
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = tuple(pieces)
        self.longest_bytes = max((len(piece.text) for piece in self._pieces), default=0)

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, token_id: int) -> Piece:
        return self._pieces[token_id] if 0 <= token_id < len(self._pieces) else SILENT
