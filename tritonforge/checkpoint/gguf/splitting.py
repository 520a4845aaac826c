"""How each family of byte-level vocabularies cuts text before merging, by the name that GGUF files carry. Pure data.

The names are those of `tokenizer.ggml.pre`. The forms are those of the families' own tokenizer.json files, which is not
always what other readers of GGUF do: SmolLM's digits, for one, stand alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class Splitting:
    """How text is cut into the pieces within which merges happen.

    Args:
        pattern: Regular expression whose matches are the pieces; None for GPT-2's, which the library has built in.
        single_digits: Each digit is a piece of its own, cut out before the pattern is applied.
        compose: Text is brought into Unicode's composed form (NFC) first.
        whole_tokens: A piece that is a token is taken whole, whatever its merges say.
        add_bos: Whether text begins with the bos token when the file does not say.
    """

    pattern: str | None = None
    single_digits: bool = False
    compose: bool = False
    whole_tokens: bool = False
    add_bos: bool = False


_LLAMA3_SPLITTING = Splitting(pattern=_LLAMA3, whole_tokens=True, add_bos=True)
_STARCODER_SPLITTING = Splitting(single_digits=True)

SPLITTINGS: Mapping[str, Splitting] = {
    "default": Splitting(),
    "falcon3": _LLAMA3_SPLITTING,
    "gpt-2": Splitting(),
    "llama-bpe": _LLAMA3_SPLITTING,
    "llama-v3": _LLAMA3_SPLITTING,
    "llama3": _LLAMA3_SPLITTING,
    "qwen2": Splitting(pattern=_QWEN2, compose=True),
    "refact": _STARCODER_SPLITTING,  # IBM's Granite code models
    "smollm": _STARCODER_SPLITTING,
    "starcoder": _STARCODER_SPLITTING,
    "tekken": Splitting(pattern=_TEKKEN, whole_tokens=True, add_bos=True),  # Mistral NeMo
}
