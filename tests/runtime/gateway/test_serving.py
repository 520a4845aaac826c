"""What a gateway reads when it loads, and how a fault in it is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import tokenizer_files
from tritonforge.runtime.gateway.errors import VersionUnusable
from tritonforge.runtime.gateway.serving import Limits, LoadedVersions, load_versions

SERVING: dict[str, Any] = {
    "schema_version": 1,
    "engine_model": "m_engine_v2",
    "engine_version": 2,
    "dialect": "tensorrt_llm",
    "tokenizer": {"kind": "huggingface", "eos_token_ids": [2, 0], "pad_token_id": 2},
    "limits": {"max_batch_size": 4, "max_input_len": 64, "max_seq_len": 128},
    "default_max_tokens": 16,
    "vocab_size": 400,
    "engine_kind": "openvino",
}


def write(folder: Path, value: object, *, number: int = 2) -> Path:
    version = folder / str(number)
    version.mkdir()
    tokenizer_files.write_chatml(version)
    (version / "serving.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


def load(folder: Path) -> LoadedVersions:
    return load_versions(folder)


def test_a_version_is_read_with_its_tokenizer(tmp_path: Path) -> None:
    version = load(write(tmp_path, {**SERVING, "added_by_a_later_release": 1})).served[2]
    assert (version.number, version.engine_model, version.end_ids, version.pad_id) == (2, "m_engine_v2", (2, 0), 2)
    assert version.limits == Limits(max_input_len=64, max_seq_len=128, max_batch_size=4)
    assert len(version.tokenizer.vocabulary) > 256


def test_versions_of_one_checkpoint_share_a_tokenizer(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write(tmp_path, {**SERVING, "engine_version": number}, number=number)
    (tmp_path / "3" / "chat_template.jinja").write_text("another template")
    versions = load(tmp_path).served
    one, two, three = (versions[number].tokenizer for number in (1, 2, 3))
    assert one is two
    assert one is not three


def test_files_that_are_no_version_are_left_alone(tmp_path: Path) -> None:
    (write(tmp_path, SERVING) / "README").write_text("")
    assert list(load(tmp_path).served) == [2]


@pytest.mark.parametrize("name", ["²", "02", "٣"])
def test_folders_that_only_look_like_a_number_are_left_alone(tmp_path: Path, name: str) -> None:
    (write(tmp_path, SERVING) / name).mkdir()
    loaded = load(tmp_path)
    assert list(loaded.served) == [2]
    assert not loaded.broken


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "serving.json cannot be read"),
        ({**SERVING, "schema_version": 2}, "schema_version is 2; this gateway reads 1"),
        ({key: value for key, value in SERVING.items() if key != "limits"}, "key 'limits' is missing"),
        ({**SERVING, "limits": {**SERVING["limits"], "max_seq_len": "x"}}, "serving.json: invalid literal"),
        ({**SERVING, "tokenizer": {**SERVING["tokenizer"], "eos_token_ids": []}}, "eos_token_ids is empty"),
        ({**SERVING, "tokenizer": {**SERVING["tokenizer"], "kind": "bert"}}, "tokenizer kind is 'bert'"),
        ({**SERVING, "dialect": "esperanto"}, "dialect is 'esperanto'; this gateway speaks llmapi, tensorrt_llm, vllm"),
        ({**SERVING, "engine_version": 3}, "engine_version is 3; expected 2, the folder's name"),
        ([SERVING], "serving.json: list indices must be integers"),
    ],
)
def test_a_fault_names_the_file_and_the_key(tmp_path: Path, value: object, message: str) -> None:
    (reason,) = load(write(tmp_path, value)).broken.values()
    assert message in reason


def test_a_version_that_cannot_be_used_leaves_the_others_alone(tmp_path: Path) -> None:
    for number in (1, 2, 3, 4):
        write(tmp_path, {**SERVING, "engine_version": number}, number=number)
    (tmp_path / "2" / "chat_template.jinja").write_text("{% if %}")
    (tmp_path / "3" / "tokenizer.json").write_text("{}")
    (tmp_path / "4" / "tokenizer_config.json").write_bytes(b"\xff")
    versions = load(tmp_path)
    assert (list(versions.served), list(versions.broken)) == ([1], [2, 3, 4])
    assert "the chat template does not parse: line 1" in versions.broken[2]
    assert "tokenizer.json cannot be read" in versions.broken[3]
    assert "tokenizer_config.json" in versions.broken[4]


def test_a_gateway_without_versions_says_so(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(VersionUnusable, match="holds no engine versions"):
            load(folder)
