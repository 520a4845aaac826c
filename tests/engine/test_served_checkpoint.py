"""A checkpoint that is served as it is: what is taken along, and what of it is the user's own file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.checkpoints import write_llama
from tests.support.full_disk import file_size_limit
from tritonforge.artifacts import EngineArtifact
from tritonforge.engine import share_file as sharing
from tritonforge.engine.served_checkpoint import prepare_served
from tritonforge.errors import BuildError, CheckpointNotFound, UnsupportedModel
from tritonforge.spec.llmapi import LlmApiEngineSpec
from tritonforge.spec.vllm import VllmEngineSpec

VLLM = VllmEngineSpec(kind="vllm")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_llama(tmp_path / "hf", shards=2)


def prepare(source: Path, tokenizer_kind: str = "huggingface", said: list[str] | None = None) -> EngineArtifact:
    return prepare_served(
        VLLM,
        source,
        source.parent / "engine",
        vocab_size=512,
        tokenizer_kind=tokenizer_kind,
        on_event=(said if said is not None else []).append,
    )


def refuse_to(error: int) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    return refuse


def test_it_holds_what_is_read_as_data_and_nothing_else(source: Path) -> None:
    (source / "additional_chat_templates").mkdir()
    (source / "additional_chat_templates" / "rag.jinja").write_text("{{ messages }}")
    for name in ("modeling_llama.py", "pytorch_model.bin", "optimizer.pt", "README.md"):
        (source / name).write_text("x")
    (source / "pytorch_model.bin.index.json").write_text("{}")
    engine = prepare(source)
    assert (engine.kind, engine.vocab_size) == ("vllm", 512)
    weights = sorted(path.name for path in source.glob("*.safetensors"))
    assert len(weights) == 2
    assert set(engine.files) == {
        *(f"checkpoint/{name}" for name in weights),
        "checkpoint/model.safetensors.index.json",
        "checkpoint/config.json",
        "checkpoint/generation_config.json",
        "checkpoint/tokenizer.json",
        "checkpoint/tokenizer_config.json",
        "checkpoint/additional_chat_templates/rag.jinja",
    }
    found = {str(path.relative_to(engine.path)) for path in engine.path.rglob("*") if path.is_file()}
    assert found == set(engine.files)
    assert engine.weights_bytes == sum((source / name).stat().st_size for name in weights)


def test_later_edits_of_the_users_do_not_reach_it(source: Path) -> None:
    engine = prepare(source)
    config, weight = source / "config.json", next(source.glob("*.safetensors"))
    before = json.loads(config.read_text()), weight.read_bytes()
    config.write_text("{}")  # in place: small files are copies
    weight.unlink()  # as a download does that replaces it
    weight.write_bytes(b"other")
    kept = engine.path / "checkpoint"
    assert (json.loads((kept / "config.json").read_text()), (kept / weight.name).read_bytes()) == before


def test_weights_take_no_room_twice_where_links_are_possible(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_clone", lambda *_: False)  # as on a file system without clones
    said: list[str] = []
    engine = prepare(source, said=said)
    for file in source.glob("*.safetensors"):
        assert (engine.path / "checkpoint" / file.name).samefile(file)
    assert not (engine.path / "checkpoint" / "config.json").samefile(source / "config.json")
    assert f"{engine.weights_bytes} bytes linked" in said[0]


def test_weights_are_copied_where_links_are_not_possible(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_clone", lambda *_: False)
    monkeypatch.setattr(os, "link", refuse_to(18))  # EXDEV
    engine = prepare(source)
    for file in source.glob("*.safetensors"):
        copy = engine.path / "checkpoint" / file.name
        assert not copy.samefile(file)
        assert copy.read_bytes() == file.read_bytes()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def close(source: Path) -> None:
    """As download tools leave files when they make them under a temporary name."""
    for path in source.iterdir():
        path.chmod(0o600)


@pytest.mark.parametrize("way", ["cloned", "copied"])
def test_a_copy_can_be_read_by_a_server_under_another_user(
    source: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    def clone(old: Path, new: Path) -> bool:
        new.touch(0o600)  # stands in for a file system with clones
        new.write_bytes(old.read_bytes())
        return True

    monkeypatch.setattr(sharing, "_clone", clone if way == "cloned" else lambda *_: False)
    monkeypatch.setattr(os, "link", refuse_to(18))  # EXDEV
    close(source)
    umask = os.umask(0o077)
    said: list[str] = []
    try:
        engine = prepare(source, said=said)
    finally:
        os.umask(umask)
    assert {mode(engine.path / file) for file in engine.files} == {0o644}
    assert {mode(path) for path in source.iterdir()} == {0o600}
    assert way in said[0]
    assert len(said) == 1


def test_a_link_keeps_the_mode_of_the_users_file_and_is_a_note_when_others_cannot_read_it(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_clone", lambda *_: False)
    close(source)
    said: list[str] = []
    engine = prepare(source, said=said)
    weights = sorted(source.glob("*.safetensors"))
    assert {mode(path) for path in weights} == {0o600}
    assert said[1].startswith(f"note: {weights[0]} and 1 more cannot be read by other users")
    assert mode(engine.path / "checkpoint" / "config.json") == 0o644

    for path in weights:
        path.chmod(0o644)
    said.clear()
    prepare(source, said=said)
    assert len(said) == 1


def test_links_of_a_download_cache_are_followed(source: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for path in source.iterdir():
        (snapshot / path.name).symlink_to(path)
    engine = prepare(snapshot)
    assert all(not (engine.path / file).is_symlink() and (engine.path / file).is_file() for file in engine.files)


@pytest.mark.parametrize("kind", ["chatglm2", "chatglm3", "glm4"])
def test_a_tokenizer_that_is_code_is_refused(source: Path, kind: str) -> None:
    with pytest.raises(UnsupportedModel, match="is Python code that comes with it, and kind vllm"):
        prepare(source, kind)
    assert not (source.parent / "engine").exists()


def test_a_missing_shard_is_found(source: Path) -> None:
    next(source.glob("*.safetensors")).unlink()
    with pytest.raises(CheckpointNotFound, match="which does not exist"):
        prepare(source)


def test_a_full_disk_leaves_nothing_and_names_the_file(source: Path) -> None:
    with file_size_limit(100), pytest.raises(BuildError, match=r"checkpoint/.* cannot be written"):
        prepare(source)
    assert [path.name for path in source.parent.iterdir()] == ["hf"]


def test_llmapi_takes_the_same_files(source: Path, tmp_path: Path) -> None:
    spec = LlmApiEngineSpec(kind="llmapi", release="1.0.0")
    engine = prepare_served(spec, source, tmp_path / "other", vocab_size=9, tokenizer_kind="llama_sentencepiece")
    assert (engine.kind, engine.files) == ("llmapi", prepare(source).files)
