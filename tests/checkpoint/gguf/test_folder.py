"""The folder that an import makes: its files, special ids, end ids and chat templates."""

import json
import stat
from pathlib import Path

import pytest

from tests.support.checkpoints import write_llama
from tests.support.gguf_files import GgufSource, from_checkpoint
from tests.support.tokenizer_files import CHATML_TEMPLATE
from tritonforge.checkpoint.gguf import import_gguf


@pytest.fixture
def source(tmp_path: Path) -> GgufSource:
    return from_checkpoint(write_llama(tmp_path / "source", layers=1))


def imported(tmp_path: Path, source: GgufSource, name: str) -> dict:
    out = import_gguf(source.write(tmp_path / "model.gguf"), tmp_path / "out")
    return json.loads((out / name).read_text())


def replace_token(source: GgufSource, token_id: int, text: str) -> None:
    source.fields["tokenizer.ggml.tokens"][token_id] = text


def test_the_folder_holds_a_hugging_face_checkpoint(tmp_path: Path, source: GgufSource) -> None:
    events: list[str] = []

    out = import_gguf(source.write(tmp_path / "model.gguf"), tmp_path / "new" / "out", on_event=events.append)

    assert out == tmp_path / "new" / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    assert stat.S_IMODE(out.stat().st_mode) & 0o555 == 0o555
    assert events[0].startswith("reading")
    assert events[-1] == f"wrote {out}"


def test_two_imports_are_equal_to_the_byte(tmp_path: Path, source: GgufSource) -> None:
    file = source.write(tmp_path / "model.gguf")
    first, second = (import_gguf(file, tmp_path / name) for name in ("a", "b"))
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name


def test_special_tokens_are_written_by_role(tmp_path: Path, source: GgufSource) -> None:
    special = imported(tmp_path, source, "special_tokens_map.json")
    assert special == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>"}


def test_the_tokenizer_is_read_as_it_is(tmp_path: Path, source: GgufSource) -> None:
    config = imported(tmp_path, source, "tokenizer_config.json")
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert config["clean_up_tokenization_spaces"] is False
    assert config["model_max_length"] == 512
    assert config["chat_template"] == CHATML_TEMPLATE


def test_control_tokens_that_end_a_turn_end_generation_too(tmp_path: Path, source: GgufSource) -> None:
    generation = imported(tmp_path, source, "generation_config.json")
    assert generation == {"bos_token_id": 1, "eos_token_id": [2, 0], "pad_token_id": 2}


def test_a_single_end_is_a_number(tmp_path: Path, source: GgufSource) -> None:
    replace_token(source, 0, "<|nothing|>")
    assert imported(tmp_path, source, "generation_config.json")["eos_token_id"] == 2


def test_the_ends_of_llama_3_are_all_found(tmp_path: Path, source: GgufSource) -> None:
    for token_id, text in enumerate(("<|end_of_text|>", "<|eom_id|>", "<|eot_id|>")):
        replace_token(source, token_id, text)
    source.fields["tokenizer.ggml.eot_token_id"] = 2

    assert imported(tmp_path, source, "generation_config.json")["eos_token_id"] == [2, 0, 1]


def test_an_ordinary_token_that_looks_like_an_end_is_none(tmp_path: Path, source: GgufSource) -> None:
    source.fields["tokenizer.ggml.token_type"][0] = 4
    assert imported(tmp_path, source, "generation_config.json")["eos_token_id"] == 2


def test_named_chat_templates_are_kept_beside_the_default(tmp_path: Path, source: GgufSource) -> None:
    source.fields |= {"tokenizer.chat_templates": ["tool_use"], "tokenizer.chat_template.tool_use": "{{ tools }}"}
    assert imported(tmp_path, source, "tokenizer_config.json")["chat_template"] == [
        {"name": "default", "template": CHATML_TEMPLATE},
        {"name": "tool_use", "template": "{{ tools }}"},
    ]


def test_a_file_without_chat_template_gives_none(tmp_path: Path, source: GgufSource) -> None:
    del source.fields["tokenizer.chat_template"]
    assert "chat_template" not in imported(tmp_path, source, "tokenizer_config.json")


def test_a_padded_embedding_keeps_its_rows(tmp_path: Path) -> None:
    source = from_checkpoint(write_llama(tmp_path / "source", layers=1, vocab=400))
    assert imported(tmp_path, source, "config.json")["vocab_size"] == 400


def test_a_sentencepiece_model_needs_no_special_ids_in_the_file(tmp_path: Path) -> None:
    source = from_checkpoint(write_llama(tmp_path / "source", layers=1, tokenizer="sentencepiece"))
    for role in ("bos", "eos", "unknown"):
        del source.fields[f"tokenizer.ggml.{role}_token_id"]

    special = imported(tmp_path, source, "special_tokens_map.json")

    assert special == {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
