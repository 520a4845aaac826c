"""The vocabulary of a tokenizer, as far as a conversion needs it: its size, and the ids of single tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import sentencepiece

from tritonforge.errors import CorruptFile
from tritonforge.formats.input_file import has_file, read_input
from tritonforge.formats.json_fields import JsonFields, read_json_object

_MOST_BYTES = 256 * 1024**2  # the largest published tokenizer files have some 30 MB
_TOKEN_ID = re.compile(r"[0-9]{1,9}")
HUGGINGFACE = "huggingface"
LLAMA_SENTENCEPIECE = "llama_sentencepiece"
# Special tokens are not in the tokenizer.model of ChatGLM: its code numbers them from the end of the vocabulary on, in
# this order (read in the published tokenization_chatglm.py of each version).
_CHATGLM2_SPECIALS = ("[MASK]", "[gMASK]", "[sMASK]", "sop", "eop")
_ROLES = ("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>")
_SPECIALS: Mapping[str, tuple[str, ...]] = {
    "chatglm2": _CHATGLM2_SPECIALS,
    "chatglm3": (*_CHATGLM2_SPECIALS, *_ROLES),
    "glm4": ("<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", *_ROLES),
}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens of one tokenizer.

    Args:
        file: The file that it was read from.
        size: Number of tokens of the trained vocabulary, without special tokens added to it.
        specials: Ids of special and added tokens, by text.
        pieces: The sentencepiece model, where there is one.
    """

    file: Path
    size: int
    specials: Mapping[str, int]
    pieces: sentencepiece.SentencePieceProcessor | None = None

    def id_of(self, token: str) -> int | None:
        """The id of a token, or None when there is none of that text."""
        if token in self.specials:
            return self.specials[token]
        if self.pieces is None:
            return None
        found = int(self.pieces.piece_to_id(token))
        return None if found == self.pieces.unk_id() and self.pieces.id_to_piece(found) != token else found


def read_vocabulary(folder: Path, kind: str) -> Vocabulary:
    """Read the vocabulary of a tokenizer of that kind.

    Raises:
        CorruptFile: Its file is not what the kind says.
    """
    if kind == HUGGINGFACE:
        return _from_tokenizer_json(folder / "tokenizer.json")
    file = folder / "tokenizer.model"
    added = _added_tokens(folder / "tokenizer_config.json")
    if kind == "glm4":
        size = _count_ranks(file)
        return Vocabulary(file, size, _numbered(kind, size) | added)
    pieces = _load_pieces(file)
    size = int(pieces.get_piece_size())
    return Vocabulary(file, size, _numbered(kind, size) | added, pieces)


def _numbered(kind: str, size: int) -> dict[str, int]:
    return {token: size + i for i, token in enumerate(_SPECIALS.get(kind, ()))}


def _from_tokenizer_json(file: Path) -> Vocabulary:
    fields = JsonFields(read_json_object(file, most_bytes=_MOST_BYTES), file)
    model = fields.nested("model")
    vocabulary = _trained_tokens(model.values.get("vocab")) if model is not None else None
    if vocabulary is None:
        raise CorruptFile(file, "has no usable model.vocab: not a tokenizer.json of the tokenizers library")
    listed = fields.values.get("added_tokens") or []
    if not isinstance(listed, list) or not all(_is_added_token(token) for token in listed):
        raise fields.wrong("added_tokens", listed, "a list of objects with id and content")
    added: dict[str, int] = {token["content"]: token["id"] for token in listed}
    return Vocabulary(file, len(vocabulary), {**vocabulary, **added})


def _trained_tokens(vocab: object) -> dict[str, int] | None:
    """Ids by token; None when the value has neither of the two forms."""
    if isinstance(vocab, dict):  # BPE and WordPiece
        return vocab if all(_is_token_id(number) for number in vocab.values()) else None
    if isinstance(vocab, list):  # Unigram: [token, score] in the order of ids
        is_usable = all(isinstance(pair, list) and pair and isinstance(pair[0], str) for pair in vocab)
        return {pair[0]: number for number, pair in enumerate(vocab)} if is_usable else None
    return None


def _is_token_id(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_added_token(token: object) -> bool:
    return isinstance(token, dict) and _is_token_id(token.get("id")) and isinstance(token.get("content"), str)


def _added_tokens(file: Path) -> dict[str, int]:
    """Tokens that tokenizer_config.json numbers itself, as later revisions of ChatGLM3 and GLM-4 do."""
    if not has_file(file):
        return {}
    decoder = JsonFields(read_json_object(file), file).nested("added_tokens_decoder")
    if decoder is None:
        return {}
    found = {}
    for number, token in decoder.values.items():
        content = token.get("content") if isinstance(token, dict) else None
        if _TOKEN_ID.fullmatch(number) is None or not isinstance(content, str):
            raise decoder.wrong(number, token, "a token id that maps to an object with the token's content")
        found[content] = int(number)
    return found


def _load_pieces(file: Path) -> sentencepiece.SentencePieceProcessor:
    model = read_input(file, most_bytes=_MOST_BYTES)
    try:
        pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise CorruptFile(file, "is not a sentencepiece model") from error
    if not model:  # the library takes an empty model for one that is yet to be loaded
        raise CorruptFile(file, "is not a sentencepiece model: it is empty")
    return pieces


def _count_ranks(file: Path) -> int:
    """Ranks count from 0 without gaps, so the number of lines is the size."""
    lines = read_input(file, most_bytes=_MOST_BYTES).splitlines()
    ranks = [line.rpartition(b" ")[2] for line in lines if line]
    if ranks != [b"%d" % rank for rank in range(len(ranks))]:
        raise CorruptFile(file, f"does not number its {len(ranks)} tokens from 0 in order")
    return len(ranks)
