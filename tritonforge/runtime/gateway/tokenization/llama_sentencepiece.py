"""Llama checkpoints that carry only a sentencepiece `tokenizer.model`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import VersionUnusable
from ..messages import Message
from .base import ReplyStyle
from .control_text import Segment
from .json_files import read_json_object, read_special_tokens, token_text
from .sentencepiece_file import SentencePieceFile
from .template_prompt import TemplatePrompt
from .vocabulary import SILENT, Piece, PieceKind


class LlamaSentencePiece:
    """Llama's tokenizer as transformers' slow class reads it.

    `add_bos_token` (default true), `add_eos_token` (default false) and `legacy` come from tokenizer_config.json. With
    `legacy` (default true, as in the releases that these checkpoints were made for) every run of text after a special
    token gets a leading space of its own; without it only a run at the very start does.

    Args:
        folder: Holds tokenizer.model.

    Raises:
        VersionUnusable: The file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._file = SentencePieceFile(folder / "tokenizer.model")
        config = read_json_object(folder / "tokenizer_config.json")
        named = read_special_tokens(folder)
        added = _added_tokens(config)
        self._special = {**self._file.control_ids(), **{token.text: token.token_id for token in added}}
        # Longest first, so that of two tokens of which one begins the other the longer is found.
        names = sorted(self._special, key=lambda name: (-len(name), name))
        self._pattern = re.compile("(" + "|".join(re.escape(name) for name in names) + ")")
        self._legacy = config.get("legacy") is not False
        self._first = [self._id(named, "bos_token", "<s>")] if config.get("add_bos_token") is not False else []
        self._last = [self._id(named, "eos_token", "</s>")] if config.get("add_eos_token") is True else []
        shown = {token.token_id: _piece(token) for token in added if token.token_id >= self._file.size}
        self.vocabulary = self._file.vocabulary(extra=shown, shows_unknown=True)
        self.reply_style = ReplyStyle(drops_first_space=True)
        self._template = TemplatePrompt(folder, control_texts=names, encode=self._encode_segment)

    def encode_text(self, text: str) -> list[int]:
        """Ids with the begin token; names of special tokens in the text are read as such, as transformers does."""
        return [*self._first, *self._encode_segment(Segment(text, literal=False)), *self._last]

    def encode_bare(self, text: str) -> list[int]:
        """Ids without begin and end token; names of special tokens in the text are read as such."""
        return self._encode_segment(Segment(text, literal=False))

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Ids of the rendered chat; the template writes the begin token itself."""
        return self._template.encode_chat(messages)

    @property
    def control_texts(self) -> Sequence[str]:
        """Texts that are read as control tokens in a completion prompt."""
        return self._template.control_texts

    def render_chat(self, messages: Sequence[Message]) -> list[Segment]:
        """The same chat as text."""
        return self._template.render_chat(messages)

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        """Ids of a rendered chat."""
        return self._template.encode_segments(segments)

    def encode_word(self, word: str) -> list[int]:
        """Ids without special tokens."""
        return self._file.encode(word)

    def _encode_segment(self, segment: Segment) -> list[int]:
        if segment.literal:
            return self._file.encode_inside(segment.text)
        ids: list[int] = []
        for index, part in enumerate(self._pattern.split(segment.text)):
            if index % 2:
                ids.append(self._special[part])
            elif part:
                spaced = self._legacy or index == 0
                ids += self._file.encode(part) if spaced else self._file.encode_inside(part)
        return ids

    def _id(self, named: Mapping[str, str], name: str, usual: str) -> int:
        text = named.get(name, usual)
        if text not in self._special:
            raise VersionUnusable(f"{name} {text!r} is not a token of tokenizer.model")
        return self._special[text]


class _AddedToken:
    def __init__(self, token_id: int, text: str, *, special: bool) -> None:
        self.token_id = token_id
        self.text = text
        self.special = special


def _added_tokens(config: Mapping[str, Any]) -> list[_AddedToken]:
    entries = config.get("added_tokens_decoder") or {}
    tokens = []
    for key, entry in entries.items():
        text = token_text(entry)
        if text is not None and str(key).isdigit():
            tokens.append(_AddedToken(int(key), text, special=bool(isinstance(entry, dict) and entry.get("special"))))
    return tokens


def _piece(token: _AddedToken) -> Piece:
    return SILENT if token.special else Piece(PieceKind.LITERAL, token.text.encode())
