"""First step of the ensemble: a batch of prompts with their words to token ids. No Triton here.

Errors speak of the ensemble's own inputs (`text_input`), because those are what clients send.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..gateway.messages import Message
from ..gateway.prompt import build_prompt
from ..gateway.request import TextRequest, parse_request
from ..gateway.serving import ServedVersion
from ..gateway.tokenization.base import ReplyStyle, Tokenizer, TokensOnly
from ..gateway.tokenization.vocabulary import Vocabulary
from ..tensors import Array, Inputs, RequestRejected
from .words import spellings, word_lists

# The ensemble's name of each input.
CLIENT_NAMES: Mapping[str, str] = {
    "QUERY": "text_input",
    "REQUEST_OUTPUT_LEN": "max_tokens",
    "BAD_WORDS_DICT": "bad_words",
    "STOP_WORDS_DICT": "stop_words",
    "EMBEDDING_BIAS_WORDS": "embedding_bias_words",
    "EMBEDDING_BIAS_WEIGHTS": "embedding_bias_weights",
    "END_ID": "end_id",
    "PAD_ID": "pad_id",
    "DECODER_QUERY": "decoder_text_input",
    "PROMPT_EMBEDDING_TABLE": "prompt_embedding_table",
    "PROMPT_TABLE_EXTRA_ID": "prompt_table_extra_id",
    "IMAGE": "image_input",
    "IMAGE_BYTES": "image_bytes_input",
    "IMAGE_URL": "image_url_input",
    "VIDEO_BYTES": "video_bytes_input",
}
# Values with which clients say what happens anyway; so do false, 0 and the empty text.
_ASKS_FOR_NOTHING: Mapping[str, object] = {"exclude_input_in_output": True, "num_return_sequences": 1}
# What only engines with an encoder, or with a model that sees, could use.
_REFUSED = ("decoder_text_input", "image_input", "image_bytes_input", "image_url_input", "video_bytes_input")


@dataclass(frozen=True, slots=True)
class _Row:
    """One prompt of a batch, as the engine gets it."""

    token_ids: Sequence[int]
    max_tokens: int
    stop_words: Sequence[Sequence[int]]
    bad_words: Sequence[Sequence[int]]
    bias: Array | None
    end_id: int
    pad_id: int


class Preprocessing:
    """The step, for the tokenizer of one engine version.

    Args:
        version: The version.
        adds_special_tokens: Put around each prompt what its tokenizer puts around texts; off for clients whose prompts
            bring the special tokens along.
    """

    def __init__(self, version: ServedVersion, *, adds_special_tokens: bool) -> None:
        self._version = (
            version if adds_special_tokens else replace(version, tokenizer=_WithoutSpecialTokens(version.tokenizer))
        )

    def run(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs for the inputs of one request, which may be a batch of prompts.

        Args:
            arrays: Inputs by name, each `[batch, ...]`.

        Raises:
            RequestRejected: An input is wrong; names it as the ensemble does, and the prompt when there are several.
        """
        inputs = {CLIENT_NAMES[name]: array for name, array in arrays.items() if name in CLIENT_NAMES}
        size = _batch_size(inputs)
        outputs = self._outputs([self._row(inputs, index, size) for index in range(size)])
        # These two are left out when there is nothing to say: then the engine's input is not given.
        if "prompt_embedding_table" in inputs:
            outputs["OUT_PROMPT_EMBEDDING_TABLE"] = inputs["prompt_embedding_table"]
        if "prompt_table_extra_id" in inputs:
            extra = inputs["prompt_table_extra_id"].reshape(size, 1).astype(np.uint64)
            is_virtual = outputs["INPUT_ID"] >= self._version.vocab_size
            outputs["OUT_PROMPT_TABLE_EXTRA_IDS"] = np.where(is_virtual, extra, np.uint64(0))
        return outputs

    def _row(self, inputs: Mapping[str, Array], index: int, size: int) -> _Row:
        try:
            return self._read(Inputs({name: array[index : index + 1] for name, array in inputs.items()}))
        except RequestRejected as error:
            if size == 1:
                raise
            raise RequestRejected(f"{error} (prompt {index + 1} of {size} in the batch)") from error

    def _read(self, inputs: Inputs) -> _Row:
        version = self._version
        _refuse(inputs, version)
        request = parse_request(inputs)
        if request.max_tokens is None:
            raise RequestRejected("max_tokens is missing; expected at least 1")
        prompt = build_prompt(request, version)
        end_id, more_end_ids = _end_ids(request, version)
        return _Row(
            token_ids=prompt.token_ids,
            max_tokens=prompt.max_tokens,
            stop_words=[*([token_id] for token_id in more_end_ids), *self._words(request.stop_words)],
            bad_words=self._words(request.bad_words),
            bias=self._bias(inputs),
            end_id=end_id,
            pad_id=version.pad_id if request.pad_id is None else request.pad_id,
        )

    def _words(self, words: Sequence[str]) -> list[list[int]]:
        return [ids for word in words for ids in spellings(self._version.tokenizer, word)]

    def _bias(self, inputs: Inputs) -> Array | None:
        """What is added to each token's logit; None for nothing."""
        words = inputs.texts("embedding_bias_words")
        weights = _numbers(inputs, "embedding_bias_weights")
        if len(words) != len(weights):
            raise RequestRejected(
                f"embedding_bias_words has {len(words)} words and embedding_bias_weights {len(weights)} numbers; "
                f"expected as many of one as of the other"
            )
        if not words:
            return None
        bias = np.zeros(self._version.vocab_size, dtype=np.float32)
        for word, weight in zip(words, weights, strict=True):
            for token_id in self._version.tokenizer.encode_word(word) if word else ():
                if token_id < len(bias):
                    bias[token_id] += weight
        return bias

    def _outputs(self, rows: Sequence[_Row]) -> dict[str, Array]:
        lengths = [len(row.token_ids) for row in rows]
        ids = np.array(
            [[*row.token_ids, *[row.pad_id] * (max(lengths) - len(row.token_ids))] for row in rows], dtype=np.int32
        )
        pad_ids = _column(row.pad_id for row in rows)
        return {
            "INPUT_ID": ids,
            "REQUEST_INPUT_LEN": _column(lengths),
            # A decoder alone has no second prompt; the backend wants one token all the same.
            "DECODER_INPUT_ID": pad_ids,
            "REQUEST_DECODER_INPUT_LEN": np.ones_like(pad_ids),
            "REQUEST_OUTPUT_LEN": _column(row.max_tokens for row in rows),
            "STOP_WORDS_IDS": word_lists([row.stop_words for row in rows]),
            "BAD_WORDS_IDS": word_lists([row.bad_words for row in rows]),
            "EMBEDDING_BIAS": _biases([row.bias for row in rows], self._version.vocab_size),
            "OUT_END_ID": _column(row.end_id for row in rows),
            "OUT_PAD_ID": pad_ids,
        }


class UnservedInputs:
    """Inputs that clients may know from elsewhere, and that the ensemble lacks.

    Over HTTP, Triton takes a field without an input for a parameter of the request, and the answer would be as
    if the field had not been given.

    Args:
        names: Their names.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def check(self, parameters: Mapping[str, object]) -> None:
        """Refuse a request with such a parameter. Raises RequestRejected."""
        asked = [name for name in self._names & parameters.keys() if _asks_for_something(name, parameters[name])]
        for name in sorted(asked):
            raise RequestRejected(f"{name} is given; this ensemble has no such input, expected none")


class _WithoutSpecialTokens(TokensOnly):
    """A tokenizer that adds nothing to a prompt."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @property
    def vocabulary(self) -> Vocabulary:
        return self._tokenizer.vocabulary

    @property
    def reply_style(self) -> ReplyStyle:
        return self._tokenizer.reply_style

    def encode_text(self, text: str) -> list[int]:
        return self._tokenizer.encode_bare(text)

    def encode_bare(self, text: str) -> list[int]:
        return self._tokenizer.encode_bare(text)

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        return self._tokenizer.encode_chat(messages)

    def encode_word(self, word: str) -> list[int]:
        return self._tokenizer.encode_word(word)


def _asks_for_something(name: str, value: object) -> bool:
    return bool(value) and value != _ASKS_FOR_NOTHING.get(name)


def _batch_size(inputs: Mapping[str, Array]) -> int:
    if "text_input" not in inputs or not inputs["text_input"].size:
        raise RequestRejected("text_input is missing; expected a prompt")
    sizes = {name: array.shape[0] if array.ndim else 1 for name, array in inputs.items()}
    size = sizes["text_input"]
    for name, other in sizes.items():
        if other != size:
            raise RequestRejected(f"{name} is for {other} prompts; expected {size}, as many as text_input has")
    return size


def _refuse(inputs: Inputs, version: ServedVersion) -> None:
    for name in _REFUSED:
        array = inputs.arrays.get(name)
        # A string that is empty asks for nothing.
        if array is not None and any(value not in {b"", ""} for value in array.ravel()[:1].tolist()):
            raise RequestRejected(f"{name} is given; the engine is a text decoder alone, expected none")
    if "bad_words" in version.unserved_inputs and any(inputs.texts("bad_words")):
        raise RequestRejected(f"bad_words is given; engine version {version.number} cannot serve it, expected none")


def _end_ids(request: TextRequest, version: ServedVersion) -> tuple[int, tuple[int, ...]]:
    """The end token, and further ones: the backend takes one, the others are stop words of one token each."""
    if request.end_id is not None:
        return request.end_id, ()
    return version.end_ids[0], version.end_ids[1:]


def _numbers(inputs: Inputs, name: str) -> list[float]:
    array = inputs.arrays.get(name)
    if array is None or not array.size:
        return []
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise RequestRejected(f"{name} is {array.ravel().tolist()}; expected finite numbers")
    return [float(value) for value in array.ravel()]


def _column(values: Iterable[int]) -> Array:
    return np.array([[value] for value in values], dtype=np.int32)


def _biases(rows: Sequence[Array | None], vocab_size: int) -> Array:
    """`[batch, vocabulary]`; without any, `[batch, 0]`, which the backend takes for an input that is not given."""
    if all(row is None for row in rows):
        return np.zeros((len(rows), 0), dtype=np.float32)
    return np.stack([np.zeros(vocab_size, dtype=np.float32) if row is None else row for row in rows])
