"""How the text of an answer grows, for each way that engines send it. Pure."""

from __future__ import annotations

from .detokenize import Detokenizer
from .passed_text import PassedText
from .prompt import Prompt
from .request import TextRequest
from .serving import ServedVersion
from .text_shape import TextShape
from .text_stream import TextStream

_NO_END_ID = -1


def end_ids_of(request: TextRequest, version: ServedVersion) -> frozenset[int]:
    """Tokens that end the answer: the checkpoint's, or the one that the request names (none at all for -1)."""
    if request.end_id is None:
        return frozenset(version.end_ids)
    return frozenset() if request.end_id == _NO_END_ID else frozenset({request.end_id})


def new_text(request: TextRequest, prompt: Prompt, version: ServedVersion) -> TextStream | PassedText:
    """The empty answer to a request."""
    style = version.tokenizer.reply_style
    drops_first_space = prompt.is_chat and style.drops_first_space
    trims_edges = prompt.is_chat and style.trims_edges
    placeholder = style.placeholder if prompt.is_chat else None
    if version.takes_text:
        return PassedText(
            TextShape(stop_words=request.stop_words, trims_edges=trims_edges, placeholder=placeholder),
            prompt_tokens=len(prompt.token_ids),
            max_tokens=prompt.max_tokens,
            count_tokens=lambda text: len(version.tokenizer.encode_word(text)),
            drops_first_space=drops_first_space,
        )
    return TextStream(
        Detokenizer(version.tokenizer.vocabulary, drops_first_space=drops_first_space),
        end_ids=end_ids_of(request, version),
        stop_words=request.stop_words,
        max_tokens=prompt.max_tokens,
        trims_edges=trims_edges,
        placeholder=placeholder,
        prompt_tokens=len(prompt.token_ids),
    )
