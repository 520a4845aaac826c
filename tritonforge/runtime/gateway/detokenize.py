"""Token ids to text as they come, whole characters only. Pure.

All vocabularies are treated as a stream of bytes in front of an incremental UTF-8 decoder. So a character is shown as
soon as its last byte is there, and any way of cutting the ids into chunks gives the same text.
"""

from __future__ import annotations

import codecs

from .tokenization.vocabulary import PieceKind, Vocabulary


class Detokenizer:
    """The text of one sequence of ids.

    Args:
        vocabulary: What the ids stand for.
        drops_first_space: Leave out the one space that sentencepiece puts before the first word. False for a
            continuation, whose first word must stay apart from the prompt.
    """

    def __init__(self, vocabulary: Vocabulary, *, drops_first_space: bool) -> None:
        self._vocabulary = vocabulary
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._drops_space = drops_first_space

    def push(self, token_id: int) -> str:
        """Text that is complete with this token; may be empty."""
        piece = self._vocabulary[token_id]
        if piece.kind is PieceKind.SILENT:
            return self.finish()
        if piece.kind is PieceKind.LITERAL:
            self._drops_space = False
            return self.finish() + piece.text.decode()
        text = piece.text
        # Once only, also when nothing is left of the piece; a space that came as a byte token is a real one.
        if self._drops_space and text:
            self._drops_space = False
            if piece.kind is PieceKind.TEXT and text.startswith(b" "):
                text = text[1:]
        return self._utf8.decode(text)

    def finish(self) -> str:
        """What is left when no more bytes follow: U+FFFD for a character that was cut off, else nothing."""
        text = self._utf8.decode(b"", final=True)
        self._utf8.reset()
        return text
