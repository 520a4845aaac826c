"""The tokenizer of a GGUF file, rebuilt as the files of a Hugging Face checkpoint. Pure but for the library."""

from __future__ import annotations

from collections.abc import Mapping

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from tritonforge.checkpoint.gguf.splitting import SPLITTINGS, Splitting
from tritonforge.checkpoint.gguf.vocabulary import BYTE_LEVEL, SENTENCEPIECE, TokenKind, Vocabulary
from tritonforge.errors import CheckpointError, UnsupportedModel, did_you_mean

_SPACE = "\u2581"  # sentencepiece's spelling of a space
_ROLES = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}


def build_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """The tokenizer that the vocabulary describes.

    Raises:
        UnsupportedModel: The kind of vocabulary or its way to cut text is not known.
        CheckpointError: The vocabulary contradicts itself.
    """
    if vocabulary.model == BYTE_LEVEL:
        splitting = _splitting(vocabulary)
        tokenizer, add_bos = _byte_level(vocabulary, splitting), splitting.add_bos
    elif vocabulary.model == SENTENCEPIECE:
        tokenizer, add_bos = _sentencepiece(vocabulary), True
    else:
        raise UnsupportedModel(
            f"{vocabulary.path}: its tokenizer", [f"model {vocabulary.model!r} is not 'gpt2' or 'llama'"]
        )
    tokenizer.add_special_tokens(_added(vocabulary, TokenKind.CONTROL, TokenKind.UNKNOWN))
    tokenizer.add_tokens(_added(vocabulary, TokenKind.USER_DEFINED))
    _frame(tokenizer, vocabulary, add_bos=add_bos if vocabulary.add_bos is None else vocabulary.add_bos)
    return tokenizer


def tokenizer_config(vocabulary: Vocabulary, *, max_tokens: int) -> dict[str, object]:
    """The tokenizer_config.json that goes with `build_tokenizer`.

    The class is the plain one that takes tokenizer.json as it is; model-specific classes rebuild parts of it.

    Args:
        vocabulary: The vocabulary.
        max_tokens: Longest sequence of the model.
    """
    values: dict[str, object] = {
        **special_tokens(vocabulary),
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_tokens,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    templates = vocabulary.chat_templates
    if set(templates) == {"default"}:
        values["chat_template"] = templates["default"]
    elif templates:
        values["chat_template"] = [{"name": name, "template": text} for name, text in templates.items()]
    return values


def special_tokens(vocabulary: Vocabulary) -> dict[str, str]:
    """The special_tokens_map.json: token texts by role."""
    ids = vocabulary.special_ids
    return {name: vocabulary.tokens[ids[role]] for role, name in _ROLES.items() if role in ids}


def _splitting(vocabulary: Vocabulary) -> Splitting:
    name = vocabulary.splitting
    if name in SPLITTINGS:
        return SPLITTINGS[name]
    reason = f"pre-tokenizer {name!r} is not known" if name else "it does not name its pre-tokenizer"
    near = did_you_mean(name, list(SPLITTINGS))
    raise UnsupportedModel(
        f"{vocabulary.path}: its tokenizer",
        [f"{reason} (tokenizer.ggml.pre)"],
        hint=near or f"known are {', '.join(SPLITTINGS)}; a file that names none has to be converted again",
    )


def _byte_level(vocabulary: Vocabulary, splitting: Splitting) -> Tokenizer:
    """Byte-level BPE: text is cut, its bytes are spelt in visible letters, and pairs are merged in the file's order."""
    tokenizer = Tokenizer(
        _bpe(vocabulary, vocabulary.merges, unk_token=None, byte_fallback=False, ignore_merges=splitting.whole_tokens)
    )
    if splitting.compose:
        tokenizer.normalizer = normalizers.NFC()
    steps: list[pre_tokenizers.PreTokenizer] = []
    if splitting.single_digits:
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    if splitting.pattern is not None:
        steps.append(pre_tokenizers.Split(Regex(splitting.pattern), behavior="isolated"))
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=splitting.pattern is None))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece(vocabulary: Vocabulary) -> Tokenizer:
    """Sentencepiece's BPE: spaces become visible, one is put before the text, and better pieces are merged first."""
    unknown = vocabulary.tokens[vocabulary.special_ids["unknown"]]
    has_bytes = vocabulary.kinds.count(TokenKind.BYTE) == 256
    merges = merges_by_score(vocabulary)
    tokenizer = Tokenizer(_bpe(vocabulary, merges, unk_token=unknown, byte_fallback=has_bytes, ignore_merges=False))
    spaces: list[normalizers.Normalizer] = [normalizers.Replace(" ", _SPACE)]
    back: list[decoders.Decoder] = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if vocabulary.add_space_prefix:
        spaces.insert(0, normalizers.Prepend(_SPACE))
        back.append(decoders.Strip(" ", 1, 0))
    tokenizer.normalizer = normalizers.Sequence(spaces)
    tokenizer.decoder = decoders.Sequence(back)
    return tokenizer


def merges_by_score(vocabulary: Vocabulary) -> tuple[tuple[str, str], ...]:
    """The merges that sentencepiece's scores stand for: every way to make a piece from two, best pieces first.

    Ids are no substitute for the scores: Llama 2's run of two spaces has a low id and the worst score.
    """
    scores = {
        token: score
        for token, kind, score in zip(vocabulary.tokens, vocabulary.kinds, vocabulary.scores, strict=True)
        if kind is TokenKind.NORMAL
    }
    ids = {token: token_id for token_id, token in enumerate(vocabulary.tokens)}
    found = [
        (-score, ids[piece[:cut]], ids[piece[cut:]], (piece[:cut], piece[cut:]))
        for piece, score in scores.items()
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
    return tuple(pair for *_, pair in sorted(found))


def _bpe(
    vocabulary: Vocabulary,
    merges: tuple[tuple[str, str], ...],
    *,
    unk_token: str | None,
    byte_fallback: bool,
    ignore_merges: bool,
) -> models.BPE:
    """The merging model. Unused ids are left out: a text must never become one, and they decode to nothing."""
    tokens = {
        token: token_id
        for token_id, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.kinds, strict=True))
        if token and kind is not TokenKind.UNUSED
    }
    try:
        return models.BPE(
            vocab=tokens,
            merges=list(merges),
            unk_token=unk_token,
            fuse_unk=unk_token is not None,
            byte_fallback=byte_fallback,
            ignore_merges=ignore_merges,
        )
    except Exception as error:  # the library raises nothing more precise
        raise CheckpointError(
            f"the tokenizer of the GGUF file contradicts itself: {error}",
            hint="its merges and tokens do not fit together",
        ) from error


def _added(vocabulary: Vocabulary, *kinds: TokenKind) -> list[AddedToken]:
    """The tokens of these kinds, which are matched whole before text is cut."""
    is_special = TokenKind.USER_DEFINED not in kinds
    return [
        AddedToken(token, normalized=False, special=is_special)
        for token, kind in zip(vocabulary.tokens, vocabulary.kinds, strict=True)
        if kind in kinds
    ]


def _frame(tokenizer: Tokenizer, vocabulary: Vocabulary, *, add_bos: bool) -> None:
    """Let text begin with bos and end with eos, as the file asks."""
    named: Mapping[str, int] = vocabulary.special_ids
    before = [named["bos"]] if add_bos and "bos" in named else []
    after = [named["eos"]] if vocabulary.add_eos else []
    if not before and not after:
        return
    first, last = ([vocabulary.tokens[token_id] for token_id in ids] for ids in (before, after))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[*first, "$A", *last],
        pair=[*first, "$A", *last, *first, "$B:1", *last],
        special_tokens=[(vocabulary.tokens[token_id], token_id) for token_id in (*before, *after)],
    )
