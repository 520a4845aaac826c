"""ChatGLM2 and ChatGLM3: sentencepiece with role tokens that are numbered after the model's own pieces.

Prompts are put together piece by piece, so text that looks like a control token stays text. Registering the control
names as text-matching tokens, as some later configurations do, would tear ordinary words apart (`eop` in `people`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...tensors import RequestRejected
from ..messages import Message
from .base import ReplyStyle, TokensOnly
from .sentencepiece_file import SentencePieceFile
from .vocabulary import SILENT

_PREFIX = ("[gMASK]", "sop")
_ROLES = ("system", "user", "assistant", "observation")
# Order of the ids after the last piece of the sentencepiece model.
_CHATGLM2_SPECIALS = ("[MASK]", "[gMASK]", "[sMASK]", "sop", "eop")
_CHATGLM3_SPECIALS = (*_CHATGLM2_SPECIALS, *(f"<|{role}|>" for role in _ROLES))
_END_ID = 2
# The models were trained to write this where they mean the year; their own chat() fills it in.
_TRAINING_TIME = ("[[训练时间]]", "2023年")


class _ChatGlm(TokensOnly):
    def __init__(self, folder: Path, specials: Sequence[str]) -> None:
        self._file = SentencePieceFile(folder / "tokenizer.model")
        self._ids: Mapping[str, int] = {name: self._file.size + index for index, name in enumerate(specials)}
        self._prefix = [self._ids[name] for name in _PREFIX]
        silent = dict.fromkeys((*self._ids.values(), 0, 1, _END_ID), SILENT)
        self.vocabulary = self._file.vocabulary(extra=silent, shows_unknown=False)
        self.reply_style = ReplyStyle(drops_first_space=True, trims_edges=True, placeholder=_TRAINING_TIME)

    def encode_text(self, text: str) -> list[int]:
        """`[gMASK] sop` and the text."""
        return [*self._prefix, *self._file.encode(text)]

    def encode_bare(self, text: str) -> list[int]:
        """The text without `[gMASK] sop`; names of special tokens in it stay text."""
        return self._file.encode(text)

    def encode_word(self, word: str) -> list[int]:
        """Ids without special tokens."""
        return self._file.encode(word)


class ChatGlm2Tokenizer(_ChatGlm):
    """ChatGLM2-6B: chats are numbered rounds of question and answer in one text.

    Args:
        folder: Holds tokenizer.model.

    Raises:
        VersionUnusable: The file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, _CHATGLM2_SPECIALS)

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """`[Round n]` with `问：` and `答：` for each question and answer, as one text.

        The model has no system role: a system message is put at the start of the first question, on lines of its own.
        """
        system, turns = _system_and_turns(messages)
        text = ""
        for number, start in enumerate(range(0, len(turns), 2), start=1):
            question = turns[start].get("content", "")
            asked = f"{system}\n\n{question}" if system and number == 1 else question
            text += f"[Round {number}]\n\n问：{asked}\n\n答："
            if start + 1 < len(turns):
                text += f"{turns[start + 1].get('content', '')}\n\n"
        return self.encode_text(text)


class ChatGlm3Tokenizer(_ChatGlm):
    """ChatGLM3-6B: every message begins with the token of its role.

    Args:
        folder: Holds tokenizer.model.

    Raises:
        VersionUnusable: The file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, _CHATGLM3_SPECIALS)

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Role token, metadata line and content of each message, each encoded alone, then the assistant's token."""
        ids = list(self._prefix)
        for index, message in enumerate(messages):
            ids.append(self._ids[f"<|{message_role(message, index)}|>"])
            ids += self._file.encode(message_metadata(message, index) + "\n")
            ids += self._file.encode(_content_with_tools(message))
        return [*ids, self._ids["<|assistant|>"]]


def message_role(message: Mapping[str, object], index: int) -> str:
    """The role, which must be one of ChatGLM's. Raises RequestRejected."""
    role = str(message["role"])
    if role not in _ROLES:
        raise RequestRejected(f"messages[{index}].role is {role!r}; expected one of {', '.join(_ROLES)}")
    return role


def message_metadata(message: Mapping[str, object], index: int) -> str:
    """The metadata line (a tool's name on an assistant's call). Raises RequestRejected when it is not one line."""
    metadata = message.get("metadata", "")
    if not isinstance(metadata, str) or "\n" in metadata:
        raise RequestRejected(f"messages[{index}].metadata is {metadata!r}; expected a string without line breaks")
    return metadata


def _content_with_tools(message: Message) -> str:
    content = str(message.get("content", ""))
    if message["role"] == "system" and "tools" in message:
        return f"{content}\n{json.dumps(message['tools'], indent=4, ensure_ascii=False)}"
    return content


def _system_and_turns(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    has_system = messages[0]["role"] == "system"
    turns = messages[1:] if has_system else messages
    for index, message in enumerate(turns):
        expected = "assistant" if index % 2 else "user"
        if message["role"] != expected:
            place = f"messages[{index + has_system}].role"
            raise RequestRejected(f"{place} is {message['role']!r}; expected {expected!r}: ChatGLM2 alternates them")
    if len(turns) % 2 == 0:
        raise RequestRejected("messages ends with an answer or has no question; expected a last message of the user")
    return (str(messages[0].get("content", "")) if has_system else ""), turns
