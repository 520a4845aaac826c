"""Which tokenizer a checkpoint has, and which ids end a generation."""

import json
from pathlib import Path

import pytest

from tests.support import tokenizer_files
from tests.support.checkpoints import write_chatglm, write_glm, write_llama
from tritonforge.artifacts import TokenizerArtifact
from tritonforge.checkpoint.source import open_checkpoint
from tritonforge.checkpoint.tokenizer import find_tokenizer
from tritonforge.checkpoint.vocabulary import read_vocabulary
from tritonforge.errors import CheckpointError, CheckpointNotFound, CorruptFile, UnsupportedModel


def find(folder: Path) -> TokenizerArtifact:
    return find_tokenizer(open_checkpoint(folder))


def change(file: Path, **values: object) -> None:
    old = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({key: value for key, value in {**old, **values}.items() if value is not ...}))


def test_a_tokenizer_json_is_carried_with_its_settings(tmp_path: Path) -> None:
    source = write_llama(tmp_path)
    (source / "chat_template.jinja").write_text("{{ messages }}")
    (source / "additional_chat_templates").mkdir()
    (source / "additional_chat_templates/tool_use.jinja").write_text("{{ tools }}")
    found = find(source)
    assert found.kind == "huggingface"
    assert sorted(found.files) == [
        "additional_chat_templates/tool_use.jinja",
        "chat_template.jinja",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert all(path.is_file() for path in found.files.values())
    assert (found.eos_token_ids, found.pad_token_id) == ((2,), 2)


def test_llama_sentencepiece_is_read_when_there_is_no_tokenizer_json(tmp_path: Path) -> None:
    found = find(write_llama(tmp_path, tokenizer="sentencepiece"))
    assert (found.kind, found.eos_token_ids, found.pad_token_id) == ("llama_sentencepiece", (2,), 2)


def test_chatglm2_ends_at_its_end_token_alone(tmp_path: Path) -> None:
    found = find(write_chatglm(tmp_path, version="chatglm2"))
    assert (found.kind, found.eos_token_ids, found.pad_token_id) == ("chatglm2", (2,), 0)


def test_chatglm3_also_ends_where_another_role_begins(tmp_path: Path) -> None:
    pieces = 420
    found = find(write_chatglm(tmp_path, version="chatglm3"))
    assert (found.kind, found.pad_token_id) == ("chatglm3", 0)
    # [MASK] is numbered by the vocabulary's size; <|user|> and <|observation|> are the seventh and ninth after it.
    assert found.eos_token_ids == (2, pieces + 6, pieces + 8)


def test_chatglm3_without_numbered_tokens_in_its_settings_counts_from_the_vocabulary(tmp_path: Path) -> None:
    source = write_chatglm(tmp_path, version="chatglm3")
    change(source / "tokenizer_config.json", added_tokens_decoder=...)
    assert find(source).eos_token_ids == (2, 426, 428)


def test_glm4_has_three_ends_even_when_its_configuration_names_one(tmp_path: Path) -> None:
    source = write_chatglm(tmp_path, version="glm4")
    assert find(source).eos_token_ids == (400, 407, 409)
    change(source / "config.json", eos_token_id=400)
    assert find(source).eos_token_ids == (400, 407, 409)
    assert find(source).kind == "glm4"


def test_native_glm_takes_the_ends_of_its_generation_settings(tmp_path: Path) -> None:
    found = find(write_glm(tmp_path))
    assert (found.kind, found.eos_token_ids, found.pad_token_id) == ("huggingface", (0, 7, 9), 0)


@pytest.mark.parametrize(
    ("generation", "model", "tokenizer", "expected"),
    [
        ({"eos_token_id": [5, 6]}, {"eos_token_id": 7}, {"eos_token": "<|im_end|>"}, (5, 6, 2)),
        ({}, {"eos_token_id": 7}, {"eos_token": "<|im_end|>"}, (7, 2)),
        ({}, {"eos_token_id": 7}, {"eos_token": {"content": "<|endoftext|>", "special": True}}, (7, 0)),
        ({}, {"eos_token_id": None}, {"eos_token": "<|im_end|>"}, (2,)),
        ({"eos_token_id": 2}, {"eos_token_id": 2}, {"eos_token": None}, (2,)),
        ({"eos_token_id": 2}, {}, {"eos_token": "<|unheard of|>"}, (2,)),
    ],
)
def test_ends_are_gathered_in_order_and_once(
    tmp_path: Path, generation: dict, model: dict, tokenizer: dict, expected: tuple[int, ...]
) -> None:
    source = write_llama(tmp_path)
    (source / "generation_config.json").write_text(json.dumps(generation))
    change(source / "config.json", **model)
    change(source / "tokenizer_config.json", **tokenizer)
    assert find(source).eos_token_ids == expected


@pytest.mark.parametrize(
    ("generation", "tokenizer", "expected"),
    [
        ({"pad_token_id": 5}, {"pad_token": "<|endoftext|>"}, 5),
        ({"pad_token_id": ...}, {"pad_token": "<|endoftext|>"}, 0),
        ({"pad_token_id": -1}, {"pad_token": None}, 2),
        ({"pad_token_id": 100_000}, {"pad_token": None}, 2),
        ({"pad_token_id": ...}, {"pad_token": None}, 2),
    ],
)
def test_padding_is_the_first_id_that_the_model_knows(
    tmp_path: Path, generation: dict, tokenizer: dict, expected: int
) -> None:
    source = write_llama(tmp_path)
    change(source / "generation_config.json", **generation)
    change(source / "tokenizer_config.json", **tokenizer)
    assert find(source).pad_token_id == expected


def test_without_any_end_the_error_says_where_to_name_it(tmp_path: Path) -> None:
    source = write_llama(tmp_path, eos_token_id=None)
    (source / "generation_config.json").unlink()
    change(source / "tokenizer_config.json", eos_token=None)
    with pytest.raises(CheckpointError, match="nothing names the token that ends a generation") as caught:
        find(source)
    assert "eos_token_id" in str(caught.value.hint)


@pytest.mark.parametrize("value", ["2", [2, "3"], True, 2.0])
def test_an_end_that_is_no_id_names_its_file(tmp_path: Path, value: object) -> None:
    source = write_llama(tmp_path)
    change(source / "generation_config.json", eos_token_id=value)
    with pytest.raises(CorruptFile, match=r"generation_config\.json: eos_token_id is .*; expected a token id"):
        find(source)


def test_an_end_outside_the_vocabulary_is_refused(tmp_path: Path) -> None:
    source = write_llama(tmp_path)
    change(source / "generation_config.json", eos_token_id=99999)
    with pytest.raises(CheckpointError, match="end token 99999 is outside the vocabulary of 379 tokens"):
        find(source)


def test_a_tokenizer_larger_than_the_model_is_of_another_model(tmp_path: Path) -> None:
    source = write_llama(tmp_path, vocab=131, tokenizer=None)
    tokenizer_files.write_chatml(source)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: has 379 tokens, but .* the model knows 131"):
        find(source)


def test_a_folder_without_a_tokenizer_is_told_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotFound, match=r"holds neither tokenizer\.json nor tokenizer\.model"):
        find(write_llama(tmp_path, tokenizer=None))


def test_a_llama_with_a_text_of_ranks_is_refused_with_the_way_out(tmp_path: Path) -> None:
    source = write_llama(tmp_path, tokenizer=None, vocab=500)
    (source / "tokenizer.model").write_bytes(tokenizer_files.rank_text())
    with pytest.raises(UnsupportedModel, match="text of ranks") as caught:
        find(source)
    assert "tokenizer.json" in str(caught.value.hint)


@pytest.mark.parametrize("content", [b"", b"\x00garbage", b"{}", b"\x0a\x0e\x0a\x05<unk>"])
def test_a_damaged_sentencepiece_model_is_named(tmp_path: Path, content: bytes) -> None:
    source = write_llama(tmp_path, tokenizer="sentencepiece")
    (source / "tokenizer.model").write_bytes(content)
    with pytest.raises(CorruptFile, match=r"tokenizer\.model: is not a sentencepiece model"):
        find(source)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[1]",
        '{"model": {}}',
        '{"model": {"vocab": [1, 2]}}',
        '{"model": {"vocab": [[]]}}',
        '{"model": {"vocab": [[1, 0]]}}',
        '{"model": {"vocab": [["a", 0], {}]}}',
        '{"model": {"vocab": {"a": "b"}}}',
        '{"model": {"vocab": {"a": -1}}}',
        '{"model": {"vocab": {"a": null}}}',
        '{"model": {"vocab": {}}, "added_tokens": [1]}',
        '{"model": {"vocab": {}}, "added_tokens": [{"id": -1, "content": "a"}]}',
    ],
)
def test_a_damaged_tokenizer_json_is_named(tmp_path: Path, content: str) -> None:
    source = write_llama(tmp_path)
    (source / "tokenizer.json").write_text(content)
    with pytest.raises(CorruptFile, match=r"tokenizer\.json"):
        find(source)


@pytest.mark.parametrize("number", ["9" * 5000, "²", "-1", "1.5", "", "a"])
def test_a_numbered_token_under_something_else_than_an_id_is_named(tmp_path: Path, number: str) -> None:
    source = write_chatglm(tmp_path, version="chatglm3")
    change(source / "tokenizer_config.json", added_tokens_decoder={number: {"content": "<|user|>"}})
    with pytest.raises(CorruptFile, match=r"tokenizer_config\.json: added_tokens_decoder\..*; expected a token id"):
        find(source)


@pytest.mark.parametrize("token", ["<|user|>", {}, {"content": 1}])
def test_a_numbered_token_without_a_text_is_named(tmp_path: Path, token: object) -> None:
    source = write_chatglm(tmp_path, version="chatglm3")
    change(source / "tokenizer_config.json", added_tokens_decoder={"64795": token})
    with pytest.raises(CorruptFile, match=r"tokenizer_config\.json: added_tokens_decoder\.64795 is "):
        find(source)


def test_ranks_with_a_gap_are_refused(tmp_path: Path) -> None:
    source = write_chatglm(tmp_path, version="glm4")
    (source / "tokenizer.model").write_bytes(b"IQ== 0\nIg== 2\n")
    with pytest.raises(CorruptFile, match="does not number its 2 tokens from 0 in order"):
        find(source)


def test_a_unigram_vocabulary_counts_its_list(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "Unigram", "vocab": [["a", 0], ["b", -1]]}}))
    vocabulary = read_vocabulary(tmp_path, "huggingface")
    assert (vocabulary.size, vocabulary.id_of("b"), vocabulary.id_of("c")) == (2, 1, None)
