"""Which files turn text into token ids, how they are to be read, and which ids end a generation.

Nothing of a checkpoint is executed: the files are read as data.

Ids that end a generation are gathered from generation_config.json (config.json where that is silent), the tokenizer's
``eos_token``, and the roles that end a turn: ChatGLM3's own chat code stops at ``<|user|>`` and ``<|observation|>``
although its configuration names id 2 alone, and GLM-4 needs the same two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tritonforge.artifacts import TokenizerArtifact
from tritonforge.checkpoint.families.chatglm import CHATGLM
from tritonforge.checkpoint.families.chatglm_version import is_rank_file
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.checkpoint.vocabulary import HUGGINGFACE, LLAMA_SENTENCEPIECE, Vocabulary, read_vocabulary
from tritonforge.errors import CheckpointError, CheckpointNotFound, UnsupportedModel
from tritonforge.formats.input_file import has_file
from tritonforge.formats.json_fields import JsonFields, read_json_object

TOKENIZER_JSON = "tokenizer.json"
TOKENIZER_MODEL = "tokenizer.model"
_CARRIED = (
    TOKENIZER_JSON,
    TOKENIZER_MODEL,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
)
_NAMED_TEMPLATES = "additional_chat_templates/*.jinja"
# Tokens that end a turn beside the end-of-text token, by kind.
_TURN_ENDS: Mapping[str, tuple[str, ...]] = {
    "chatglm3": ("<|user|>", "<|observation|>"),
    "glm4": ("<|endoftext|>", "<|user|>", "<|observation|>"),
}


def find_tokenizer(source: SourceCheckpoint) -> TokenizerArtifact:
    """The tokenizer of a checkpoint.

    Raises:
        CheckpointNotFound: There is no tokenizer file.
        CorruptFile: A file cannot be read.
        UnsupportedModel: The tokenizer is of a kind that cannot be read without running the checkpoint's code.
        CheckpointError: Its ids do not fit the model's vocabulary, or nothing names the id that ends a generation.
    """
    kind = _kind(source)
    vocabulary = read_vocabulary(source.folder, kind)
    vocab_size = source.config.vocab_size
    if vocabulary.size > vocab_size:
        raise CheckpointError(
            f"{vocabulary.file}: has {vocabulary.size} tokens, but config.json says that the model knows {vocab_size}",
            hint="tokenizer and weights are not of the same model",
        )
    settings = _Settings.read(source)
    ends = tuple(dict.fromkeys(_end_ids(settings, vocabulary, kind)))
    if not ends:
        raise CheckpointError(
            f"{source.folder}: nothing names the token that ends a generation",
            hint="set eos_token_id in generation_config.json",
        )
    for end in ends:
        if not 0 <= end < vocab_size:
            raise CheckpointError(f"{source.folder}: end token {end} is outside the vocabulary of {vocab_size} tokens")
    pad = _pad_id(settings, vocabulary, ends[0], vocab_size)
    return TokenizerArtifact(kind, _carried_files(source.folder), ends, pad)


def _carried_files(folder: Path) -> dict[str, Path]:
    templates = (str(path.relative_to(folder)) for path in sorted(folder.glob(_NAMED_TEMPLATES)))
    return {name: folder / name for name in (*_CARRIED, *templates) if has_file(folder / name)}


def _kind(source: SourceCheckpoint) -> str:
    model = source.folder / TOKENIZER_MODEL
    chatglm = source.config.chatglm
    # Checkpoints in transformers' own naming carry tokenizer.json, as all others do.
    if source.architecture in CHATGLM.architectures and chatglm is not None and has_file(model):
        return chatglm.chatglm_version
    if has_file(source.folder / TOKENIZER_JSON):
        return HUGGINGFACE
    if not has_file(model):
        raise CheckpointNotFound(
            f"{source.folder}: holds neither {TOKENIZER_JSON} nor {TOKENIZER_MODEL}",
            hint="copy the tokenizer's files into the folder",
        )
    if is_rank_file(model):
        raise UnsupportedModel(
            str(model),
            ["a text of ranks does not say how text is split into words"],
            hint=f"transformers.AutoTokenizer.from_pretrained(…).save_pretrained(…) makes a {TOKENIZER_JSON} of it",
        )
    return LLAMA_SENTENCEPIECE


@dataclass(frozen=True, slots=True)
class _Settings:
    generation: JsonFields
    model: JsonFields
    tokenizer: JsonFields

    @classmethod
    def read(cls, source: SourceCheckpoint) -> _Settings:
        generation, tokenizer = (
            _optional_fields(source.folder / name) for name in ("generation_config.json", "tokenizer_config.json")
        )
        return cls(generation, source.fields, tokenizer)


def _optional_fields(path: Path) -> JsonFields:
    return JsonFields(read_json_object(path) if has_file(path) else {}, path)


def _end_ids(settings: _Settings, vocabulary: Vocabulary, kind: str) -> Iterable[int]:
    yield from _ids(settings.generation, "eos_token_id") or _ids(settings.model, "eos_token_id")
    named = _special_token(settings.tokenizer, "eos_token")
    for token in (*((named,) if named else ()), *_TURN_ENDS.get(kind, ())):
        found = vocabulary.id_of(token)
        if found is not None:
            yield found


def _pad_id(settings: _Settings, vocabulary: Vocabulary, end: int, vocab_size: int) -> int:
    """The first named padding id that the model knows (Llama 1 names -1, some fine-tunes one past the end)."""
    named = _special_token(settings.tokenizer, "pad_token")
    found = [*_ids(settings.generation, "pad_token_id"), *_ids(settings.model, "pad_token_id")]
    if named is not None:
        found += [token for token in (vocabulary.id_of(named),) if token is not None]
    return next((token for token in found if 0 <= token < vocab_size), end)


def _ids(fields: JsonFields, key: str) -> tuple[int, ...]:
    value = fields.values.get(key)
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(type(item) is int for item in ids):
        raise fields.wrong(key, value, "a token id or a list of token ids")
    return tuple(cast("list[int]", ids))


def _special_token(fields: JsonFields, key: str) -> str | None:
    """A special token's text; older files hold an object with its ``content``."""
    value = fields.values.get(key)
    if isinstance(value, dict):
        value = value.get("content")
    if value is None or isinstance(value, str):
        return value
    raise fields.wrong(key, value, "the text of a token")
