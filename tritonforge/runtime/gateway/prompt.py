"""From a checked request to token ids within the limits of one engine version. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..tensors import RequestRejected
from .request import TextRequest
from .serving import ServedVersion


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the engine gets.

    Args:
        token_ids: The prompt.
        max_tokens: Tokens to generate.
        is_chat: Whether the answer is a chat reply, which has an edge of its own, or continues the prompt's text.
    """

    token_ids: tuple[int, ...]
    max_tokens: int
    is_chat: bool


def build_prompt(request: TextRequest, version: ServedVersion) -> Prompt:
    """Tokenise the prompt and settle how many tokens may follow.

    Raises:
        RequestRejected: The prompt is empty or too long, `max_tokens` does not fit behind it, or `min_length` is above.
    """
    field = "text_input" if request.messages is None else "messages"
    _check_size(field, request, version)
    if request.messages is None:
        token_ids = version.tokenizer.encode_text(request.text or "")
    else:
        token_ids = version.tokenizer.encode_chat(request.messages)
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
    return Prompt(token_ids=tuple(token_ids), max_tokens=max_tokens, is_chat=request.messages is not None)


def _check_size(field: str, request: TextRequest, version: ServedVersion) -> None:
    # No token is longer than the longest one: a text that cannot fit is refused before it is tokenised.
    messages = request.messages or ()
    texts = [request.text or "", *(str(message.get("content", "")) for message in messages)]
    size_bytes = sum(len(text.encode()) for text in texts)
    longest = max(version.tokenizer.vocabulary.longest_bytes, 1)
    if size_bytes > longest * version.limits.max_input_len:
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
