"""Checkpoints with a tokenizer.json. Owns the `tokenizers` library."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from ..errors import VersionUnusable
from ..messages import Message
from .base import ReplyStyle
from .control_text import Segment
from .json_files import read_special_tokens
from .template_prompt import TemplatePrompt
from .vocabulary import SILENT, Piece, PieceKind, Vocabulary

_SPACE_MARK = "\u2581"  # what sentencepiece writes for a space


class HuggingFaceTokenizer:
    """A tokenizer.json with a byte-level or a sentencepiece-like decoder.

    Args:
        folder: Holds tokenizer.json and, when there are any, tokenizer_config.json and chat templates.

    Raises:
        VersionUnusable: The file cannot be read, or decodes in a way that cannot be done piece by piece.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        self._backend = _read_backend(path)
        # Of its own: the setting cannot be changed while another thread encodes.
        self._literal_backend = _read_backend(path)
        self._literal_backend.encode_special_tokens = True
        added = self._backend.get_added_tokens_decoder()
        named = set(read_special_tokens(folder).values())
        special = {token.content for token in added.values() if token.special or token.content in named}
        decoder = _Decoder.of(self._backend, path)
        self.reply_style = ReplyStyle(drops_first_space=decoder.drops_first_space)
        self.vocabulary = _vocabulary(self._backend, decoder, special)
        self._template = TemplatePrompt(folder, control_texts=special, encode=self._encode_segment)

    def encode_text(self, text: str) -> list[int]:
        """Ids with what the file's post-processor adds; names of special tokens in the text are read as such.

        A completion prompt is the caller's own, template included, as in transformers. Chats are kept safe.
        """
        return list(self._backend.encode(text, add_special_tokens=True).ids)

    def encode_bare(self, text: str) -> list[int]:
        """Ids without what the post-processor adds; names of special tokens in the text are read as such."""
        return self._encode_segment(Segment(text, literal=False))

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Ids of the rendered chat; the template writes all special tokens, so none are added."""
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
        return self._encode_segment(Segment(word, literal=True))

    def _encode_segment(self, segment: Segment) -> list[int]:
        backend = self._literal_backend if segment.literal else self._backend
        return list(backend.encode(segment.text, add_special_tokens=False).ids)


def _read_backend(path: Path) -> Backend:
    try:
        backend = Backend.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise VersionUnusable(f"{path} cannot be read: {error}") from error
    # A file saved in the middle of training may cut or pad every text.
    backend.no_truncation()
    backend.no_padding()
    return backend


class _Decoder:
    """How the file turns tokens into text, reduced to what can be done piece by piece."""

    def __init__(self, *, byte_level: bool, byte_fallback: bool, drops_first_space: bool) -> None:
        self.byte_level = byte_level
        self.byte_fallback = byte_fallback
        self.drops_first_space = drops_first_space

    @classmethod
    def of(cls, backend: Backend, path: Path) -> _Decoder:
        steps = _decoder_steps(backend)
        kinds = [step.get("type") for step in steps]
        if "ByteLevel" in kinds:
            return cls(byte_level=True, byte_fallback=False, drops_first_space=False)
        marks = [step for step in steps if step.get("type") == "Replace" and _SPACE_MARK in str(step.get("pattern"))]
        metaspace = [step for step in steps if step.get("type") == "Metaspace"]
        if not marks and not metaspace:
            raise VersionUnusable(f"{path}: decoder {kinds} is not supported; expected ByteLevel or a space mark ▁")
        strips = any(step.get("type") == "Strip" and step.get("start", 0) > 0 for step in steps)
        prepends = any(step.get("prepend_scheme", "always") != "never" for step in metaspace)
        return cls(byte_level=False, byte_fallback="ByteFallback" in kinds, drops_first_space=strips or prepends)

    def piece(self, token: str) -> Piece:
        if self.byte_level:
            return Piece(PieceKind.TEXT, _bytes_of(token))
        if self.byte_fallback and len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            return Piece(PieceKind.BYTE, bytes([int(token[3:5], 16)]))
        return Piece(PieceKind.TEXT, token.replace(_SPACE_MARK, " ").encode())


def _decoder_steps(backend: Backend) -> list[Mapping[str, Any]]:
    if backend.decoder is None:
        return []
    state = json.loads(backend.decoder.__getstate__())
    return list(state["decoders"]) if state.get("type") == "Sequence" else [state]


def _vocabulary(backend: Backend, decoder: _Decoder, special: set[str]) -> Vocabulary:
    tokens = backend.get_vocab(with_added_tokens=True)
    added = {token.content for token in backend.get_added_tokens_decoder().values()}
    pieces = [SILENT] * (max(tokens.values(), default=-1) + 1)
    for token, token_id in tokens.items():
        if token in special:
            continue
        pieces[token_id] = Piece(PieceKind.LITERAL, token.encode()) if token in added else decoder.piece(token)
    return Vocabulary(pieces)


def _byte_alphabet() -> Mapping[str, int]:
    """The byte that each character of a byte-level vocabulary stands for (the alphabet of GPT-2).

    Printable bytes of Latin-1 stand for themselves; the others are numbered from U+0100.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {
        **{chr(byte): byte for byte in printable},
        **{chr(0x100 + index): byte for index, byte in enumerate(others)},
    }


_ALPHABET = _byte_alphabet()


def _bytes_of(token: str) -> bytes:
    try:
        return bytes(_ALPHABET[char] for char in token)
    except KeyError:
        return token.encode()  # not a byte-level spelling: the library takes the token as text, too
