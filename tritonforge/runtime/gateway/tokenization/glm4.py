"""GLM-4 in its original form: byte-pair ranks in a text file named `tokenizer.model`. Owns the `tiktoken` library."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path

import tiktoken

from ..errors import VersionUnusable
from ..messages import Message
from .base import ReplyStyle, TokensOnly
from .chatglm import message_metadata, message_role
from .json_files import read_json_object, token_text
from .vocabulary import SILENT, Piece, PieceKind, Vocabulary

# How text is cut before merging; the same expression as Llama 3's.
_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Order of the ids after the last rank, for checkpoints whose tokenizer_config.json does not number them.
_SPECIALS = (
    "<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>",
    "<|observation|>", "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>",
)  # fmt: skip
_NEEDED = ("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>")


class Glm4Tokenizer(TokensOnly):
    """GLM-4-9B's ranks with role tokens; prompts are put together piece by piece, so text never becomes control.

    Args:
        folder: Holds tokenizer.model and, when there is one, tokenizer_config.json.

    Raises:
        VersionUnusable: The file is not a list of ranks, or a role token has no number.
    """

    def __init__(self, folder: Path) -> None:
        ranks = _read_ranks(folder / "tokenizer.model")
        self._ids = _special_ids(folder, first=len(ranks))
        self._encoding = tiktoken.Encoding(
            "glm4", pat_str=_PATTERN, mergeable_ranks=dict(ranks), special_tokens=dict(self._ids)
        )
        self._prefix = [self._ids["[gMASK]"], self._ids["<sop>"]]
        pieces = [SILENT] * (max((*ranks.values(), *self._ids.values())) + 1)
        for text, rank in ranks.items():
            pieces[rank] = Piece(PieceKind.TEXT, text)
        self.vocabulary = Vocabulary(pieces)
        self.reply_style = ReplyStyle(trims_edges=True)

    def encode_text(self, text: str) -> list[int]:
        """`[gMASK] <sop>` and the text."""
        return [*self._prefix, *self.encode_word(text)]

    def encode_bare(self, text: str) -> list[int]:
        """The text without `[gMASK] <sop>`; names of special tokens in it stay text."""
        return self.encode_word(text)

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Role token, metadata line and content of each message, each encoded alone, then the assistant's token."""
        ids = list(self._prefix)
        for index, message in enumerate(messages):
            ids.append(self._ids[f"<|{message_role(message, index)}|>"])
            ids += self.encode_word(message_metadata(message, index) + "\n")
            ids += self.encode_word(str(message.get("content", "")))
        return [*ids, self._ids["<|assistant|>"]]

    def encode_word(self, word: str) -> list[int]:
        """Ids without special tokens; names of special tokens in the text stay text."""
        return self._encoding.encode_ordinary(word)


def _read_ranks(path: Path) -> Mapping[bytes, int]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError as error:
        raise VersionUnusable(f"{path} is missing") from error
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(lines, start=1):
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise VersionUnusable(f"{path}:{number}: not a rank; expected base64 text, a space and a number") from error
    if sorted(ranks.values()) != list(range(len(ranks))):
        raise VersionUnusable(f"{path}: ranks are not numbered 0 to {len(ranks) - 1}")
    return ranks


def _special_ids(folder: Path, *, first: int) -> Mapping[str, int]:
    listed = read_json_object(folder / "tokenizer_config.json").get("added_tokens_decoder") or {}
    ids = {text: int(key) for key, entry in listed.items() if (text := token_text(entry)) is not None}
    if not ids:
        ids = {name: first + index for index, name in enumerate(_SPECIALS)}
    missing = [name for name in _NEEDED if name not in ids]
    if missing:
        raise VersionUnusable(f"{folder}: tokenizer_config.json gives no id for {', '.join(missing)}")
    return ids
