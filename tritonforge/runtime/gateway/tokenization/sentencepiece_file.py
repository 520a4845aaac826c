"""A sentencepiece `tokenizer.model`: loading it, and what its ids stand for. Owns the `sentencepiece` library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sentencepiece

from ..errors import VersionUnusable
from .vocabulary import SILENT, Piece, PieceKind, Vocabulary

# Serialised protobuf messages that follow each other are merged: this sets ModelProto.normalizer_spec (field 3)
# .add_dummy_prefix (field 3) to false and leaves everything else as it is in the file.
_NO_SPACE_BEFORE_FIRST_WORD = b"\x1a\x02\x18\x00"
_UNKNOWN = " \u2047 "  # what sentencepiece shows for a token that it could not read


class SentencePieceFile:
    """The model in the file.

    Args:
        path: The file.

    Raises:
        VersionUnusable: The file is missing or not a sentencepiece model.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise VersionUnusable(f"{path} is missing")
        self._model: Any = sentencepiece.SentencePieceProcessor()
        self._bare: Any = sentencepiece.SentencePieceProcessor()
        try:
            content = path.read_bytes()
            self._model.LoadFromSerializedProto(content)
            self._bare.LoadFromSerializedProto(content + _NO_SPACE_BEFORE_FIRST_WORD)
        except (RuntimeError, OSError) as error:
            raise VersionUnusable(f"{path} is not a sentencepiece model: {error}") from error
        self.size = int(self._model.get_piece_size())

    def encode(self, text: str) -> list[int]:
        """Ids of a text; the model puts a space before its first word, and control tokens are never recognised."""
        return list(self._model.encode(text))

    def encode_inside(self, text: str) -> list[int]:
        """Ids of a text that continues another one: no space is put before it."""
        return list(self._bare.encode(text))

    def control_ids(self) -> Mapping[str, int]:
        """Control and unknown tokens by their text, for example `<s>`."""
        model = self._model
        wanted = [i for i in range(self.size) if model.is_control(i) or model.is_unknown(i)]
        return {str(model.id_to_piece(token_id)): token_id for token_id in wanted}

    def vocabulary(self, *, extra: Mapping[int, Piece], shows_unknown: bool) -> Vocabulary:
        """What the ids stand for.

        Args:
            extra: Pieces that the tokenizer adds to the model, or puts in place of the model's own, by id.
            shows_unknown: Whether the unknown token is visible (Llama) or not (ChatGLM).
        """
        pieces = [self._piece(token_id, shows_unknown=shows_unknown) for token_id in range(self.size)]
        pieces += [SILENT] * (max(extra, default=-1) + 1 - len(pieces))
        for token_id, piece in extra.items():
            pieces[token_id] = piece
        return Vocabulary(pieces)

    def _piece(self, token_id: int, *, shows_unknown: bool) -> Piece:
        model = self._model
        if model.is_control(token_id):
            return SILENT
        if model.is_unknown(token_id):
            return Piece(PieceKind.LITERAL, _UNKNOWN.encode()) if shows_unknown else SILENT
        text = str(model.id_to_piece(token_id))
        if model.is_byte(token_id):
            return Piece(PieceKind.BYTE, bytes([int(text[3:5], 16)]))
        return Piece(PieceKind.TEXT, text.replace("\u2581", " ").encode())
