"""Tokenizers: what is rebuilt from a GGUF vocabulary cuts text into the same ids as the tokenizer that it came from."""

import json
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tests.support.gguf_files import GgufSource, byte_level_fields, sentencepiece_fields
from tests.support.tokenizer_files import CHATML_SPECIALS, TEXT, sentencepiece_bpe
from tritonforge.checkpoint.gguf.reader import open_gguf
from tritonforge.checkpoint.gguf.splitting import SPLITTINGS
from tritonforge.checkpoint.gguf.tokenizer import build_tokenizer
from tritonforge.checkpoint.gguf.vocabulary import read_vocabulary
from tritonforge.errors import CheckpointError, UnsupportedModel

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
STRINGS = (
    "", " ", "   ", "Hello world", " Hello", "  Hello", "x  1 2", "a 12  345\n\n 7", "12345678", "1,234.56",
    "tabs\t\tand\r\nlines\n\n\n", "I'll don't I'LL DON'T", "naïve café", "nai\u0308ve cafe\u0301", "你好，世界",
    "👋🏽 🇩🇪", "²½ ٣ Ⅷ", "def f(n):\n    return n - 1\n", "<|im_start|>user\nHi<|im_end|>\n", "a<|endoftext|>b",
    "<|im_start", "…“”", "<s>text</s> <unk>", "<0x0A>", "▁under▁score", "trailing ",
)  # fmt: skip


def step(*steps: pre_tokenizers.PreTokenizer) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(list(steps))


def split(pattern: str) -> pre_tokenizers.PreTokenizer:
    return step(
        pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    )


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
PUBLISHED = {
    "gpt-2": GPT2,
    "default": GPT2,
    "smollm": step(pre_tokenizers.Digits(individual_digits=True), GPT2),
    "starcoder": step(pre_tokenizers.Digits(individual_digits=True), GPT2),
    "llama-bpe": split(LLAMA3),
    "qwen2": split(QWEN2),
}


def train(splitting: str) -> Tokenizer:
    """A byte-level tokenizer with the pre-tokenizer of a published family, trained on enough text to merge a lot."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=splitting == "llama-bpe"))
    tokenizer.pre_tokenizer = PUBLISHED[splitting]
    tokenizer.decoder = decoders.ByteLevel()
    if splitting == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(
        vocab_size=800,
        special_tokens=[AddedToken(text, special=True, normalized=False) for text in CHATML_SPECIALS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*TEXT, *STRINGS] * 2, trainer)
    return tokenizer


def rebuild(path: Path, fields: dict[str, object], **changes: object) -> Tokenizer:
    """The tokenizer that comes out of a file with these fields."""
    fields = {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2} | fields
    fields |= {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    return build_tokenizer(read_vocabulary(open_gguf(GgufSource(fields, {}).write(path))))


@pytest.mark.parametrize("splitting", PUBLISHED)
def test_a_byte_level_tokenizer_gives_the_ids_of_its_source(tmp_path: Path, splitting: str) -> None:
    source = train(splitting)

    made = rebuild(tmp_path / "t.gguf", byte_level_fields(source.to_str(), splitting=splitting), add_bos_token=False)

    for text in STRINGS:
        assert made.encode(text).ids == source.encode(text).ids, text
        assert made.decode(made.encode(text).ids, skip_special_tokens=False) == source.decode(
            source.encode(text).ids, skip_special_tokens=False
        )


def test_a_digit_stands_alone_and_leaves_the_spaces_before_it_together(tmp_path: Path) -> None:
    made = rebuild(
        tmp_path / "t.gguf", byte_level_fields(train("smollm").to_str(), splitting="smollm"), add_bos_token=False
    )

    assert made.encode("x  12").tokens == ["x", "ĠĠ", "1", "2"]


@pytest.mark.parametrize(("name", "add_bos"), [("llama-bpe", True), ("tekken", True), ("smollm", False)])
def test_bos_is_added_as_the_family_does_when_the_file_does_not_say(tmp_path: Path, name: str, add_bos: bool) -> None:
    made = rebuild(tmp_path / "t.gguf", byte_level_fields(train("gpt-2").to_str(), splitting=name))

    assert (made.encode("Hello").ids[:1] == [1]) is add_bos
    assert made.encode("Hello", add_special_tokens=False).ids[:1] != [1]


def test_the_file_decides_about_bos_and_eos(tmp_path: Path) -> None:
    fields = byte_level_fields(train("gpt-2").to_str(), splitting="llama-bpe")

    made = rebuild(tmp_path / "t.gguf", fields, add_bos_token=False, add_eos_token=True)

    ids = made.encode("Hello").ids
    assert ids[0] != 1
    assert ids[-1] == 2
    assert made.encode("a", "b").ids.count(2) == 2


def test_unused_ids_have_no_text(tmp_path: Path) -> None:
    fields = byte_level_fields(train("gpt-2").to_str(), splitting="gpt-2")
    fields["tokenizer.ggml.tokens"] += ["[PAD800]", "[PAD801]"]
    fields["tokenizer.ggml.token_type"] += [5, 5]

    made = rebuild(tmp_path / "t.gguf", fields)

    last = len(fields["tokenizer.ggml.tokens"]) - 1
    assert made.id_to_token(last) is None
    assert made.decode([made.token_to_id("H"), last]) == "H"


def test_a_user_defined_token_is_matched_whole_but_is_not_special(tmp_path: Path) -> None:
    fields = byte_level_fields(train("gpt-2").to_str(), splitting="gpt-2")
    fields["tokenizer.ggml.tokens"].append("<think> ")
    fields["tokenizer.ggml.token_type"].append(4)

    made = rebuild(tmp_path / "t.gguf", fields)

    last = len(fields["tokenizer.ggml.tokens"]) - 1
    assert last in made.encode("a<think> b").ids
    assert made.decode([last]) == "<think> "


def test_special_tokens_are_known_by_id_when_the_file_has_no_token_types(tmp_path: Path) -> None:
    fields = byte_level_fields(train("gpt-2").to_str(), splitting="gpt-2")
    del fields["tokenizer.ggml.token_type"]

    made = rebuild(tmp_path / "t.gguf", fields)

    assert made.encode("<|im_start|>").ids == [1]
    assert made.decode([1], skip_special_tokens=True) == ""


@pytest.mark.parametrize("name", ["deepseek-llm", "smolm", "a-new-one"])
def test_an_unknown_pre_tokenizer_is_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsupportedModel, match=f"'{name}'") as refused:
        rebuild(tmp_path / "t.gguf", byte_level_fields(train("gpt-2").to_str(), splitting=name))
    assert "smollm" in str(refused.value.hint)


def test_a_byte_level_file_without_a_pre_tokenizer_is_refused(tmp_path: Path) -> None:
    fields = byte_level_fields(train("gpt-2").to_str(), splitting="gpt-2")
    del fields["tokenizer.ggml.pre"]
    with pytest.raises(UnsupportedModel, match="does not name its pre-tokenizer"):
        rebuild(tmp_path / "t.gguf", fields)


@pytest.mark.parametrize("model", ["t5", "bert", "rwkv"])
def test_another_kind_of_tokenizer_is_refused_by_name(tmp_path: Path, model: str) -> None:
    fields = byte_level_fields(train("gpt-2").to_str(), splitting="gpt-2") | {"tokenizer.ggml.model": model}
    with pytest.raises(UnsupportedModel, match=f"'{model}'"):
        rebuild(tmp_path / "t.gguf", fields)


def test_a_merge_of_tokens_that_do_not_exist_is_refused(tmp_path: Path) -> None:
    fields = byte_level_fields(train("gpt-2").to_str(), splitting="gpt-2")
    fields["tokenizer.ggml.merges"].append("never seen")
    with pytest.raises(CheckpointError, match="never"):
        rebuild(tmp_path / "t.gguf", fields)


def test_every_pre_tokenizer_in_the_table_can_be_built(tmp_path: Path) -> None:
    fields = byte_level_fields(train("gpt-2").to_str(), splitting="gpt-2")
    for name in SPLITTINGS:
        made = rebuild(tmp_path / f"{name}.gguf", fields | {"tokenizer.ggml.pre": name}, add_bos_token=False)
        for text in STRINGS:
            assert normal(made.decode(made.encode(text).ids, skip_special_tokens=False)) == normal(text)


def normal(text: str) -> str:
    return normalizers.NFC().normalize_str(text)


def sentencepiece_pair(path: Path, **changes: object) -> tuple[sentencepiece.SentencePieceProcessor, Tokenizer]:
    model = sentencepiece_bpe()
    return sentencepiece.SentencePieceProcessor(model_proto=model), rebuild(
        path, sentencepiece_fields(model), **changes
    )


SPECIAL_TEXTS = ("<s>", "</s>", "<unk>")


def test_a_sentencepiece_tokenizer_gives_the_ids_of_sentencepiece(tmp_path: Path) -> None:
    source, made = sentencepiece_pair(tmp_path / "t.gguf")

    for text in (*TEXT, *STRINGS):
        if text and not any(special in text for special in SPECIAL_TEXTS):
            assert made.encode(text).ids == [1, *source.encode(text)], text
            assert made.decode(made.encode(text).ids) == source.decode(source.encode(text))


def test_sentencepiece_agrees_on_any_text(tmp_path_factory: pytest.TempPathFactory) -> None:
    source, made = sentencepiece_pair(tmp_path_factory.mktemp("sp") / "t.gguf", add_bos_token=False)
    letters = st.text(st.sampled_from("aetonrsi TchFParis.,0123 \n\téß世界👋\u2581<>"), min_size=1)

    @settings(max_examples=300, deadline=None, database=None, derandomize=True)
    @given(text=letters)
    def agree(text: str) -> None:
        assert made.encode(text).ids == source.encode(text)

    agree()


def test_sentencepiece_without_space_prefix_keeps_text_as_it_is(tmp_path: Path) -> None:
    _, made = sentencepiece_pair(tmp_path / "t.gguf", add_space_prefix=False, add_bos_token=False)

    assert made.encode("The").tokens[0] != "▁The"
    assert made.decode(made.encode("The").ids) == "The"
    assert made.decode(made.encode(" The").ids) == " The"


def test_control_tokens_become_ids_and_decode_to_nothing(tmp_path: Path) -> None:
    _, made = sentencepiece_pair(tmp_path / "t.gguf", add_bos_token=False)

    assert made.encode("</s>").ids == [2]
    assert made.decode([2]) == ""
    added = json.loads(made.to_str())["added_tokens"]
    assert [(token["content"], token["special"]) for token in added] == [
        (text, True) for text in ("<unk>", "<s>", "</s>")
    ]
