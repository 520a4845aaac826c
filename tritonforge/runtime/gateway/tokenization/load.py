"""The right tokenizer for a version's files; imports only the library that this kind needs."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from ..errors import VersionUnusable
from .base import Tokenizer

_KINDS = {
    "huggingface": (".huggingface", "HuggingFaceTokenizer"),
    "llama_sentencepiece": (".llama_sentencepiece", "LlamaSentencePiece"),
    "chatglm2": (".chatglm", "ChatGlm2Tokenizer"),
    "chatglm3": (".chatglm", "ChatGlm3Tokenizer"),
    "glm4": (".glm4", "Glm4Tokenizer"),
}


def load_tokenizer(kind: str, folder: Path) -> Tokenizer:
    """Read the tokenizer files in `folder`.

    Args:
        kind: huggingface, llama_sentencepiece, chatglm2, chatglm3 or glm4.
        folder: The files, as they are in the checkpoint.

    Raises:
        VersionUnusable: The kind is unknown, a library is missing, or a file cannot be used.
    """
    if kind not in _KINDS:
        raise VersionUnusable(f"tokenizer kind is {kind!r}; expected one of {', '.join(_KINDS)}")
    module_name, class_name = _KINDS[kind]
    try:
        module = importlib.import_module(module_name, __package__)
    except ImportError as error:
        raise VersionUnusable(f"tokenizer kind {kind} needs a library that is not installed: {error}") from error
    return cast("Callable[[Path], Tokenizer]", getattr(module, class_name))(folder)


class SharedTokenizers:
    """Loads tokenizers, and the same files only once: most versions of a model are of one checkpoint."""

    def __init__(self) -> None:
        self._by_content: dict[str, Tokenizer] = {}

    def load(self, kind: str, folder: Path, *, apart_from: str) -> Tokenizer:
        """The tokenizer in `folder`, as `load_tokenizer` reads it.

        Args:
            kind: Kind of tokenizer.
            folder: Its files.
            apart_from: Name of the one file in the folder that is not the tokenizer's.

        Raises:
            VersionUnusable: As `load_tokenizer`.
        """
        digest = hashlib.sha256(kind.encode())
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != apart_from):
            content = path.read_bytes()
            digest.update(f"\0{path.relative_to(folder)}\0{len(content)}\0".encode())
            digest.update(content)
        key = digest.hexdigest()
        if key not in self._by_content:
            self._by_content[key] = load_tokenizer(kind, folder)
        return self._by_content[key]
