"""The vocabulary of a GGUF file as a value: tokens, what kind each is, merges, special ids, chat templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from tritonforge.checkpoint.gguf.reader import GgufFile
from tritonforge.errors import CorruptFile

BYTE_LEVEL = "gpt2"
SENTENCEPIECE = "llama"

# Control tokens at which generation ends besides the file's own eos, eot and eom ids: the same texts that llama.cpp
# looks for, since files rarely name all of them.
_END_TEXTS = (
    "<|end_of_text|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "<EOT>",
)
_SENTENCEPIECE_IDS: Mapping[str, int] = {"unknown": 0, "bos": 1, "eos": 2}  # of files that name none


class TokenKind(IntEnum):
    """What a token is, in the numbers of the file format."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The vocabulary of a GGUF file.

    Args:
        path: The file, for errors.
        model: How text becomes tokens: ``gpt2`` (byte-level BPE) or ``llama`` (sentencepiece's BPE).
        splitting: The file's name for how text is cut before merging; empty when it gives none.
        tokens: Text of each token, by id.
        kinds: Kind of each token, by id.
        scores: Score of each token, by id: the higher, the earlier it is merged. Empty for byte-level BPE.
        merges: Pairs that are merged, first ones first. Empty for sentencepiece.
        special_ids: Ids by role, as far as the file has them: ``bos``, ``eos``, ``unknown``, ``padding``.
        end_ids: Ids at which generation ends, the file's eos first.
        add_bos: Text begins with the bos token; None when the file does not say.
        add_eos: Text ends with the eos token.
        add_space_prefix: A space is put before the text (sentencepiece only).
        chat_templates: Jinja templates by name; ``default`` is the one to use unasked.
    """

    path: Path
    model: str
    splitting: str
    tokens: tuple[str, ...]
    kinds: tuple[TokenKind, ...]
    scores: tuple[float, ...]
    merges: tuple[tuple[str, str], ...]
    special_ids: Mapping[str, int]
    end_ids: tuple[int, ...]
    add_bos: bool | None
    add_eos: bool
    add_space_prefix: bool
    chat_templates: Mapping[str, str]


def read_vocabulary(file: GgufFile) -> Vocabulary:
    """The vocabulary of a GGUF file.

    Raises:
        CorruptFile: A key is missing, or lists do not fit together.
    """
    fields = file.fields
    model = fields.text("tokenizer.ggml.model")
    tokens = tuple(_strings(file, "tokenizer.ggml.tokens"))
    texts = [token for token in tokens if token]  # an empty text marks an id without a token
    if len(set(texts)) != len(texts):
        raise CorruptFile(file.path, "tokenizer.ggml.tokens holds a token twice", hint=None)
    special_ids = _special_ids(file, model, len(tokens))
    kinds = _kinds(file, len(tokens), special_ids)
    add_bos = "tokenizer.ggml.add_bos_token"
    return Vocabulary(
        path=file.path,
        model=model,
        splitting=fields.text("tokenizer.ggml.pre", ""),
        tokens=tokens,
        kinds=kinds,
        scores=_scores(file, len(tokens)) if model == SENTENCEPIECE else (),
        merges=_merges(file) if model == BYTE_LEVEL else (),
        special_ids=special_ids,
        end_ids=_end_ids(file, tokens, kinds, special_ids["eos"]),
        add_bos=fields.flag(add_bos) if add_bos in fields else None,
        add_eos=fields.flag("tokenizer.ggml.add_eos_token", False),  # noqa: FBT003 - the default of a boolean field
        add_space_prefix=fields.flag("tokenizer.ggml.add_space_prefix", True),  # noqa: FBT003 - as above
        chat_templates=_chat_templates(file),
    )


def _strings(file: GgufFile, key: str) -> list[str]:
    values = file.listed(key)
    if not values or not all(isinstance(value, str) for value in values):
        raise CorruptFile(file.path, f"{key} is missing or empty; expected a list of strings", hint=None)
    return values


def _special_ids(file: GgufFile, model: str, count: int) -> dict[str, int]:
    defaults = _SENTENCEPIECE_IDS if model == SENTENCEPIECE else {}
    found = dict(defaults)
    for role in ("bos", "eos", "unknown", "padding"):
        key = f"tokenizer.ggml.{role}_token_id"
        if key in file.fields:
            found[role] = file.fields.integer(key, least=0)
            if found[role] >= count:
                raise CorruptFile(file.path, f"{key} is {found[role]}, but there are {count} tokens", hint=None)
    if "eos" not in found:
        raise file.fields.wrong("tokenizer.ggml.eos_token_id", None, "the id at which generation ends")
    return found


def _kinds(file: GgufFile, count: int, special_ids: Mapping[str, int]) -> tuple[TokenKind, ...]:
    key = "tokenizer.ggml.token_type"
    stored = file.listed(key) or [TokenKind.NORMAL] * count
    _check_length(file, key, stored, count)
    try:
        kinds = [TokenKind(kind) for kind in stored]
    except ValueError as error:
        raise CorruptFile(file.path, f"{key}: {error}", hint=None) from error
    for token_id in special_ids.values():
        # Files without token types leave the special tokens to be known by their ids.
        if kinds[token_id] in (TokenKind.NORMAL, TokenKind.UNDEFINED):
            kinds[token_id] = TokenKind.CONTROL
    return tuple(kinds)


def _scores(file: GgufFile, count: int) -> tuple[float, ...]:
    key = "tokenizer.ggml.scores"
    stored = file.listed(key)
    if stored is None:
        raise file.fields.wrong(key, None, "a score for each token")
    _check_length(file, key, stored, count)
    return tuple(float(score) for score in stored)


def _merges(file: GgufFile) -> tuple[tuple[str, str], ...]:
    key = "tokenizer.ggml.merges"
    merges = []
    for merge in _strings(file, key):
        space = merge.find(" ", 1)  # a token may be a space itself
        if space < 0 or space == len(merge) - 1:
            raise CorruptFile(file.path, f"{key}: {merge!r} is not two tokens with a space between", hint=None)
        merges.append((merge[:space], merge[space + 1 :]))
    return tuple(merges)


def _end_ids(file: GgufFile, tokens: Sequence[str], kinds: Sequence[TokenKind], eos_id: int) -> tuple[int, ...]:
    ends = [eos_id]
    for role in ("eot", "eom"):
        key = f"tokenizer.ggml.{role}_token_id"
        if key in file.fields:
            ends.append(file.fields.integer(key, least=0))
    ids = {token: token_id for token_id, token in enumerate(tokens)}
    by_text = (ids[text] for text in _END_TEXTS if text in ids)
    ends += [token_id for token_id in by_text if kinds[token_id] is TokenKind.CONTROL]
    return tuple(token_id for token_id in dict.fromkeys(ends) if token_id < len(tokens))


def _chat_templates(file: GgufFile) -> dict[str, str]:
    templates = {}
    if "tokenizer.chat_template" in file.fields:
        templates["default"] = file.fields.text("tokenizer.chat_template")
    for name in file.listed("tokenizer.chat_templates") or []:
        templates[str(name)] = file.fields.text(f"tokenizer.chat_template.{name}")
    return templates


def _check_length(file: GgufFile, key: str, values: Sequence[object], count: int) -> None:
    if len(values) != count:
        raise CorruptFile(file.path, f"{key} has {len(values)} entries for {count} tokens", hint=None)
