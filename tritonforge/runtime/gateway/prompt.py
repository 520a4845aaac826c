"""From a checked request to token ids within the limits of one engine version. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..tensors import RequestRejected
from .messages import Message, parse_messages
from .prompt_text import chat_text
from .request import TextRequest
from .serving import ServedVersion

# JSON text with every character beyond ASCII spelled as \uXXXX has up to three times its bytes.
_JSON_GROWTH = 3
# Names, quotes and brackets need some room, however short the prompt may be.
_JSON_FLOOR_BYTES = 64 * 2**10


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the engine gets.

    Args:
        token_ids: The prompt.
        max_tokens: Tokens to generate.
        text: The prompt as text, for an engine that takes text.
        is_chat: Whether the answer is a chat reply, which has an edge of its own, or continues the prompt's text.
    """

    token_ids: tuple[int, ...]
    max_tokens: int
    is_chat: bool
    text: str = ""


def check_size(request: TextRequest, version: ServedVersion) -> None:
    """Refuse a prompt that cannot fit, by the bytes of what was sent: cheap, and before it is read at all.

    A text may have as many bytes as `max_input_len` tokens of the vocabulary's longest one. The JSON text of a chat may
    have three times that, and always 64 KiB.

    Raises:
        RequestRejected: There are more.
    """
    most_bytes = _most_bytes(version)
    if request.messages is None:
        _check_bytes("text_input", len((request.text or "").encode()), most_bytes, version)
    else:
        most_bytes = max(_JSON_GROWTH * most_bytes, _JSON_FLOOR_BYTES)
        _check_bytes("messages", len(request.messages.encode()), most_bytes, version)


def build_prompt(request: TextRequest, version: ServedVersion) -> Prompt:
    """Tokenise the prompt and settle how many tokens may follow.

    Raises:
        RequestRejected: The prompt is wrong, empty or too long, `max_tokens` does not fit behind it, or `min_length` is
            above.
    """
    check_size(request, version)
    field = "text_input" if request.messages is None else "messages"
    text, token_ids = _tokenised(request, version)
    count = len(token_ids)
    limits = version.limits
    if count == 0:
        raise RequestRejected(f"{field} has no tokens; expected at least 1")
    if count > limits.max_input_len:
        raise RequestRejected(f"{field} has {count} tokens; expected at most {limits.max_input_len} (max_input_len)")
    if max(token_ids) >= version.vocab_size:
        raise RequestRejected(
            f"{field} has token id {max(token_ids)}; the engine knows {version.vocab_size}: it is of another checkpoint"
        )
    max_tokens = _max_tokens(request, version, prompt_tokens=count)
    minimum = request.sampling.min_length
    if minimum is not None and minimum > max_tokens:
        raise RequestRejected(f"min_length is {minimum}; expected at most max_tokens, which is {max_tokens}")
    return Prompt(token_ids=tuple(token_ids), max_tokens=max_tokens, is_chat=request.messages is not None, text=text)


def _tokenised(request: TextRequest, version: ServedVersion) -> tuple[str, list[int]]:
    """The text for an engine that takes text, and what it is tokenised to."""
    tokenizer = version.tokenizer
    if request.messages is None:
        text = request.text or ""
        return text, tokenizer.encode_text(text)
    messages = parse_messages(request.messages)
    _check_chat(messages, version)
    if not version.takes_text:
        return "", tokenizer.encode_chat(messages)
    prompt = chat_text(messages, tokenizer)
    return prompt.text, prompt.token_ids


def _check_chat(messages: Sequence[Message], version: ServedVersion) -> None:
    limit = version.limits.max_input_len
    if len(messages) > limit:
        raise RequestRejected(f"messages has {len(messages)} messages; expected at most {limit} (max_input_len)")
    size_bytes = sum(len(str(message.get("content", "")).encode()) for message in messages)
    _check_bytes("messages", size_bytes, _most_bytes(version), version)


def _most_bytes(version: ServedVersion) -> int:
    return max(version.tokenizer.vocabulary.longest_bytes, 1) * version.limits.max_input_len


def _check_bytes(field: str, size_bytes: int, most_bytes: int, version: ServedVersion) -> None:
    if size_bytes > most_bytes:
        raise RequestRejected(
            f"{field} has {size_bytes} bytes; no {version.limits.max_input_len} tokens (max_input_len) hold that many"
        )


def _max_tokens(request: TextRequest, version: ServedVersion, *, prompt_tokens: int) -> int:
    room = version.limits.max_seq_len - prompt_tokens
    if room < 1:
        raise RequestRejected(
            f"the prompt has {prompt_tokens} tokens and leaves no room for an answer; "
            f"expected less than {version.limits.max_seq_len} (max_seq_len)"
        )
    if request.max_tokens is None:
        return min(version.default_max_tokens, room)
    if request.max_tokens > room:
        raise RequestRejected(
            f"max_tokens is {request.max_tokens}; expected at most {room}, what a prompt of {prompt_tokens} leaves of "
            f"{version.limits.max_seq_len} (max_seq_len)"
        )
    return request.max_tokens
