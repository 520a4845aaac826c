"""Served versions around a tiny vocabulary that is easy to read: every letter is its own token."""

from __future__ import annotations

from collections.abc import Sequence

from tritonforge.runtime.gateway.messages import Message
from tritonforge.runtime.gateway.serving import Limits, ServedVersion
from tritonforge.runtime.gateway.tokenization.base import ReplyStyle
from tritonforge.runtime.gateway.tokenization.vocabulary import SILENT, Piece, PieceKind, Vocabulary

END = 0
OTHER_END = 128  # beyond the letters


class Letters:
    """Id of a letter is its code; a chat is its contents in brackets."""

    def __init__(self) -> None:
        letters = [Piece(PieceKind.TEXT, bytes([code])) for code in range(1, 128)]
        self.vocabulary = Vocabulary([SILENT, *letters, SILENT])
        self.reply_style = ReplyStyle(drops_first_space=True)

    def encode_text(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        return self.encode_text("".join(f"[{message['content']}]" for message in messages))

    def encode_word(self, word: str) -> list[int]:
        return self.encode_text(word)


def version(number: int = 1, *, max_input_len: int = 20, max_seq_len: int = 40, vocab_size: int = 129) -> ServedVersion:
    """A version of the model `m` with two end tokens and small limits."""
    return ServedVersion(
        number=number,
        engine_model=f"m_engine_v{number}",
        dialect="tensorrt_llm",
        tokenizer=Letters(),
        end_ids=(END, OTHER_END),
        pad_id=END,
        limits=Limits(max_input_len=max_input_len, max_seq_len=max_seq_len, max_batch_size=4),
        default_max_tokens=30,
        vocab_size=vocab_size,
    )
