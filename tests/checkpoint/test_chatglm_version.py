"""The version of a ChatGLM checkpoint follows from its files, whatever its folder is called."""

from pathlib import Path

import pytest

from tests.support.checkpoints import write_chatglm
from tritonforge.checkpoint.families.chatglm_version import is_rank_file
from tritonforge.checkpoint.source import open_checkpoint
from tritonforge.errors import CorruptFile

MODEL = "modeling_chatglm.ChatGLMForConditionalGeneration"
WITHOUT_CAUSAL_LM = {"AutoConfig": "configuration_chatglm.ChatGLMConfig", "AutoModel": MODEL}
WITH_CAUSAL_LM = {**WITHOUT_CAUSAL_LM, "AutoModelForCausalLM": MODEL}


def version_of(folder: Path) -> str:
    chatglm = open_checkpoint(folder).config.chatglm
    assert chatglm is not None
    return chatglm.chatglm_version


@pytest.mark.parametrize("version", ["chatglm2", "chatglm3", "glm4"])
@pytest.mark.parametrize("name", ["chatglm2-6b", "chatglm3-6b", "glm-4-9b", "model"])
def test_published_layouts_are_told_apart_in_any_folder(tmp_path: Path, version: str, name: str) -> None:
    assert version_of(write_chatglm(tmp_path / name, version=version)) == version


@pytest.mark.parametrize("version", ["chatglm2", "chatglm3", "glm4"])
def test_published_configurations_suffice_without_a_tokenizer(tmp_path: Path, version: str) -> None:
    assert version_of(write_chatglm(tmp_path, version=version, tokenizer=False)) == version


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("THUDM/chatglm2-6b-32k", "chatglm2"),
        ("THUDM/chatglm3-6b", "chatglm3"),
        ("zai-org/glm-4-9b-chat", "glm4"),
        ("somebody/chatglm2-6b", "chatglm3"),
        ("/data/chatglm2-6b", "chatglm3"),
    ],
)
def test_only_the_vendors_own_repositories_count_as_an_origin(tmp_path: Path, origin: str, expected: str) -> None:
    source = write_chatglm(tmp_path, version="chatglm3", tokenizer=False, _name_or_path=origin)
    assert version_of(source) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"auto_map": WITHOUT_CAUSAL_LM}, "chatglm2"),
        ({"auto_map": WITH_CAUSAL_LM}, "chatglm3"),
        ({"auto_map": WITH_CAUSAL_LM, "pre_seq_len": None}, "chatglm2"),
        ({"auto_map": WITH_CAUSAL_LM, "prefix_projection": False}, "chatglm2"),
        ({"auto_map": None}, "chatglm3"),
        ({"auto_map": None, "eos_token_id": [100, 107, 109]}, "glm4"),
        ({"auto_map": None, "chatglm_version": "chatglm2"}, "chatglm2"),
    ],
)
def test_facts_of_the_configuration_decide(tmp_path: Path, facts: dict[str, object], expected: str) -> None:
    assert version_of(write_chatglm(tmp_path, tokenizer=False, **facts)) == expected


def test_a_large_vocabulary_is_that_of_glm4(tmp_path: Path) -> None:
    facts: dict[str, object] = {"hidden": 4, "heads": 2, "intermediate": 2, "layers": 1}
    assert version_of(write_chatglm(tmp_path, tokenizer=False, vocab=151552, **facts)) == "glm4"


@pytest.mark.parametrize(("code", "expected"), [("ROLES = ['<|assistant|>']", "chatglm3"), ("PREFIX = 1", "chatglm2")])
def test_the_code_of_the_tokenizer_is_evidence_and_is_not_run(tmp_path: Path, code: str, expected: str) -> None:
    source = write_chatglm(tmp_path, tokenizer=False, auto_map=WITH_CAUSAL_LM)
    (source / "tokenization_chatglm.py").write_text(f"{code}\nraise SystemExit('this ran')\n")
    assert version_of(source) == expected


def test_a_version_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    source = write_chatglm(tmp_path, tokenizer=False, chatglm_version="chatglm5")
    with pytest.raises(CorruptFile, match='chatglm_version is "chatglm5"; expected one of chatglm2, chatglm3, glm4'):
        open_checkpoint(source)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"IQ== 0\nIg== 1\n", True),
        (b"IQ== 0\r\n", True),
        (b"IQ==\n", False),
        (b"\n\x0e\n\x05<unk>\x15", False),
        (b"IQ 0\n", False),
        (b"", False),
        (b"x" * 10000, False),
    ],
)
def test_a_text_of_ranks_is_told_from_a_sentencepiece_model(tmp_path: Path, content: bytes, expected: bool) -> None:
    file = tmp_path / "tokenizer.model"
    file.write_bytes(content)
    assert is_rank_file(file) is expected
